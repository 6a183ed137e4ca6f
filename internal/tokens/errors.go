package tokens

import "errors"

// The faults of a token. No error text holds any part of the token.
var (
	// ErrMalformed means that the token does not have the form of our tokens: too long, not three
	// parts, not JSON, another algorithm.
	ErrMalformed = errors.New("token is malformed")
	// ErrUnknownKey means that the token names no signing key of the set.
	ErrUnknownKey = errors.New("token names an unknown signing key")
	// ErrSignature means that the signature is not the key's.
	ErrSignature = errors.New("token signature is invalid")
	// ErrClaims means that the claims are foreign or incomplete.
	ErrClaims = errors.New("token claims are invalid")
)
