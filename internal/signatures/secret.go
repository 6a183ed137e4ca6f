// Package signatures signs webhooks as Standard Webhooks 1.0.0 describes, and defines the form of the
// signing secrets and of the digests that are kept of signatures.
package signatures

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// secretPrefix begins the text of every signing secret.
const secretPrefix = "whsec_"

// How long a signing key may be, in bytes, by the standard.
const (
	minKeyLength = 24
	maxKeyLength = 64
	newKeyLength = 32
)

// idLength is the length of a secret's identifier in hexadecimal digits: 64 bits.
const idLength = 16

// ErrSecret is in the chain of every error about a secret's form. None of them holds the secret.
var ErrSecret = errors.New("not a signing secret")

// Secret is a signing secret. It prints as its identifier, in every format.
type Secret struct {
	// a function, because package fmt calls no methods for an unexported field of another struct, and prints only the
	// address of a function
	key func() []byte
	id  string
}

// NewSecret returns a new random secret, and its text, which is all that a receiver needs.
func NewSecret() (Secret, string) {
	key := make([]byte, newKeyLength)
	_, _ = rand.Read(key) // crypto/rand never returns an error: it ends the program
	return newSecret(key), secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// ParseSecret reads a secret's text: "whsec_" and 24 to 64 bytes in base64, which all libraries of the standard can
// read. White space around it is ignored, because files end in a line break.
func ParseSecret(text string) (Secret, error) {
	encoded, found := strings.CutPrefix(strings.TrimSpace(text), secretPrefix)
	if !found {
		return Secret{}, fmt.Errorf("%w: it does not begin with %s", ErrSecret, secretPrefix)
	}
	// Our decoder would skip line breaks; the receiver's might not.
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		return Secret{}, fmt.Errorf("%w: what follows %s is not base64 with padding", ErrSecret, secretPrefix)
	}
	if len(key) < minKeyLength || len(key) > maxKeyLength {
		return Secret{}, fmt.Errorf("%w: it decodes to %d bytes; allowed are %d to %d", ErrSecret, len(key), minKeyLength,
			maxKeyLength)
	}
	return newSecret(key), nil
}

func newSecret(key []byte) Secret {
	// The identifier is keyed by the secret, so that it is useless without the secret, and computed over a text that is
	// not a message, so that it is not a valid signature.
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("findings-operator secret identifier"))
	return Secret{key: func() []byte { return key }, id: hex.EncodeToString(mac.Sum(nil))[:idLength]}
}

// ID identifies the secret without revealing it.
func (s Secret) ID() string { return s.id }

// Format keeps the secret out of logs, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "secret %s", s.id) }

// MarshalText keeps the secret out of JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte("secret " + s.id), nil }
