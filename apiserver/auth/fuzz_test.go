package auth

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/internal/tokens"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Only a header with the token as it was signed is accepted, and a refusal says no more than that the
// header is invalid.
func FuzzAuthorization(f *testing.F) {
	key := tokens.GenerateSigningKey()
	data, err := tokens.EncodeKeySet(key.Public())
	harness.Must(f, err)
	keys, err := tokens.DecodeKeySet(data)
	harness.Must(f, err)
	now := time.Now().Truncate(time.Second)
	token, err := key.Sign(tokens.Claims{KeyUID: "uid", Organization: "acme", ID: "id", IssuedAt: now, ExpiresAt: now.Add(time.Hour)})
	harness.Must(f, err)
	// Each fuzzing process has its own token, so inputs have placeholders for its parts.
	parts := strings.Split(token, ".")
	for _, seed := range []string{
		"", "Bearer ", "Bearer", "bearer @.#.$", "Bearer @.#.$", "Bearer  @.#.$", "Bearer @.#.$ ", "Basic @.#.$", "@.#.$", "Bearer @.#.$, Bearer @.#.$",
		"Bearer @.#.$.", "Bearer .@.#.$", "Bearer @.#.", "Bearer @.#", "Bearer @..$", "Bearer #.@.$", "Bearer @.#.$=", "Bearer @.@.@", "Bearer eyJhbGciOiJub25lIn0.#.",
		"Bearer \x00", "Bearer \xff", "Bearer a.b.c", "Bearer ..", "Bearer eyJhbGciOiJub25lIn0..", "Bearer " + strings.Repeat("a", 9000),
	} {
		f.Add(seed, 0, byte(0))
	}
	for at, change := range []byte{1, 2, 0x20, 0x80} {
		f.Add("Bearer @.#.$", len(scheme)+len(token)-1-at, change)
		f.Add("Bearer @.#.$", len(scheme)+at*len(token)/4, change)
	}
	signatures := newSignatures(16)
	f.Fuzz(func(t *testing.T, header string, at int, change byte) {
		header = strings.NewReplacer("@", parts[0], "#", parts[1], "$", parts[2]).Replace(header)
		if at >= 0 && header != "" {
			changed := []byte(header)
			changed[at%len(changed)] ^= change
			header = string(changed)
		}
		given, err := bearer(header)
		if err == nil {
			_, err = signatures.verify(keys, given)
		}
		genuine := len(header) > len(scheme) && strings.EqualFold(header[:len(scheme)], scheme) && header[len(scheme):] == token
		switch {
		case err == nil && !genuine:
			t.Errorf("%q is good", header)
		case err != nil && genuine:
			t.Errorf("the token itself is refused: %v", err)
		case err != nil && (!errors.Is(err, ErrUnauthenticated) || ReasonOf(err) == ""):
			t.Errorf("%q: %v is no refusal", header, err)
		}
	})
}
