package tokens

import (
	"errors"
	"fmt"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// MaxLength is how long a token may be, in bytes. Longer input is refused before any work.
const MaxLength = 4096

// alphabet is every character that a token may hold.
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

// parser checks form, algorithm, signature and issuer. The caller checks the time, so that the costly part of a check
// can be cached.
//
// Strict decoding and alphabet together give each token exactly one spelling. Otherwise, the unused bits of the last
// base64 character could be changed and line breaks inserted anywhere, and a cache keyed by the text would store one
// token many times.
var parser = jwt.NewParser(
	jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}),
	jwt.WithStrictDecoding(),
	jwt.WithoutClaimsValidation(),
)

// Sign returns a token that carries the claims, signed by the key.
func (k SigningKey) Sign(claims Claims) (string, error) {
	if err := claims.validate(); err != nil {
		return "", err
	}
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims.toWire())
	token.Header["kid"] = k.id
	signed, err := token.SignedString(k.private)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	if len(signed) > MaxLength {
		return "", fmt.Errorf("%w: a token of %d bytes is longer than the %d that are accepted", ErrClaims, len(signed),
			MaxLength)
	}
	return signed, nil
}

// Verified holds the claims of a genuine token and the key that signed it.
type Verified struct {
	Claims

	// KeyID names the signing key.
	KeyID string
}

// VerifySignature returns the claims of a token if it is one of ours. It does not check the expiry; see ExpiredAt. The
// returned error wraps one of this package's errors.
func (s KeySet) VerifySignature(token string) (Verified, error) {
	if len(token) > MaxLength {
		return Verified{}, fmt.Errorf("%w: longer than %d bytes", ErrMalformed, MaxLength)
	}
	if strings.ContainsFunc(token, foreign) {
		return Verified{}, fmt.Errorf("%w: invalid character", ErrMalformed)
	}
	var wire wireClaims
	parsed, err := parser.ParseWithClaims(token, &wire, s.lookup)
	if err != nil {
		return Verified{}, classify(err)
	}
	if err := checkForm(token); err != nil {
		return Verified{}, err
	}
	if wire.Issuer != Issuer {
		return Verified{}, fmt.Errorf("%w: issued by another", ErrClaims)
	}
	claims, err := wire.fromWire()
	if err != nil {
		return Verified{}, err
	}
	id, _ := parsed.Header["kid"].(string)
	return Verified{Claims: claims, KeyID: id}, nil
}

func foreign(r rune) bool { return !strings.ContainsRune(alphabet, r) }

// lookup finds the key by its exact name: no header can make it open a file or a URL.
func (s KeySet) lookup(token *jwt.Token) (any, error) {
	id, ok := token.Header["kid"].(string)
	if !ok {
		return nil, ErrUnknownKey
	}
	public, ok := s.keys[id]
	if !ok {
		return nil, ErrUnknownKey
	}
	return public, nil
}

// classify drops the parser's text, because parts of it quote the input.
func classify(err error) error {
	switch {
	case errors.Is(err, ErrUnknownKey):
		return ErrUnknownKey
	case errors.Is(err, jwt.ErrTokenMalformed):
		return ErrMalformed
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return ErrSignature
	}
	return ErrMalformed
}
