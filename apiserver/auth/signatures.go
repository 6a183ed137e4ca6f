package auth

import (
	"crypto/sha256"
	"errors"
	"strings"

	"k8s.io/utils/lru"

	"github.com/appsec-dev/findings-operator/internal/tokens"
)

const scheme = "Bearer "

// bearer returns the token of an Authorization header that is exactly "Bearer <token>". The
// scheme's case does not matter (RFC 9110, section 11.1).
func bearer(header string) (string, error) {
	if header == "" {
		return "", refuse(ReasonMissing)
	}
	if len(header) <= len(scheme) || !strings.EqualFold(header[:len(scheme)], scheme) {
		return "", refuse(ReasonMalformed)
	}
	token := header[len(scheme):]
	if len(token) > tokens.MaxLength {
		return "", refuse(ReasonMalformed)
	}
	return token, nil
}

// signatures caches which tokens have a valid signature, by the token's hash, because verifying costs more than the
// rest of a request's identification. Invalid tokens are not cached, so that nobody can fill the memory with them; each
// costs at most one verification, and none if it names an unknown signing key.
type signatures struct {
	good *lru.Cache
}

func newSignatures(size int) *signatures { return &signatures{good: lru.New(size)} }

// verify returns the claims of a token with a valid signature, whether or not the token is still accepted.
func (s *signatures) verify(keys tokens.KeySet, token string) (tokens.Claims, error) {
	sum := sha256.Sum256([]byte(token))
	if found, ok := s.good.Get(sum); ok {
		verified := found.(tokens.Verified)
		// The signing key may have been withdrawn since. Its identifier is its hash, so it cannot identify
		// another key now.
		if keys.Has(verified.KeyID) {
			return verified.Claims, nil
		}
		s.good.Remove(sum)
	}
	verified, err := keys.VerifySignature(token)
	if err != nil {
		return tokens.Claims{}, refuse(reasonFor(err))
	}
	s.good.Add(sum, verified)
	return verified.Claims, nil
}

func reasonFor(err error) Reason {
	switch {
	case errors.Is(err, tokens.ErrUnknownKey):
		return ReasonUnknownKey
	case errors.Is(err, tokens.ErrSignature):
		return ReasonSignature
	}
	return ReasonMalformed
}
