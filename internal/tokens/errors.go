package tokens

import "errors"

// What is wrong with a token. No error text holds any part of the token.
var (
	// ErrMalformed goes with what is no token of ours by its form: too long, not three
	// parts, no JSON, another algorithm.
	ErrMalformed = errors.New("token is malformed")
	// ErrUnknownKey goes with a token that names no signing key of the set.
	ErrUnknownKey = errors.New("token names an unknown signing key")
	// ErrSignature goes with a token whose signature is not the key's.
	ErrSignature = errors.New("token signature is invalid")
	// ErrClaims goes with claims that are not ours or not complete.
	ErrClaims = errors.New("token claims are invalid")
	// ErrExpired goes with a token that is genuine and whose life is over.
	ErrExpired = errors.New("token has expired")
)
