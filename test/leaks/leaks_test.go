package leaks

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestASecretIsLookedForInEveryForm(t *testing.T) {
	cases := []struct {
		reason, key, value string
		seen               []string
	}{
		{"an API key's token", "token", "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJlLXNpZ25hdHVyZQ",
			[]string{"Bearer eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJlLXNpZ25hdHVyZQ", "signature=c2lnbmF0dXJlLXNpZ25hdHVyZQ"}},
		{"a webhook secret", "secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw+/==",
			[]string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw+/==", "key MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw+/==", "?s=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw%2B%2F%3D%3D"}},
		{"a private key", "ed25519.pem", "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAAAAAAAAAAA\n-----END PRIVATE KEY-----\n",
			[]string{"MC4CAQAwBQYDK2VwBCIEIAAAAAAAAAAA"}},
		{"bytes", "cursor", "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10", []string{"AAECAwQFBgcICQoLDA0ODxA="}},
	}
	for _, c := range cases {
		encoded := base64.StdEncoding.EncodeToString([]byte(c.value))
		for _, text := range append(c.seen, "as stored: "+encoded) {
			if got := found(t, c.key, encoded, text); len(got) == 0 {
				t.Errorf("%s: not found in %q", c.reason, text)
			}
		}
	}
	for _, public := range []struct{ key, value string }{
		{"previous-public.pem", "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAAAAAAAAAAAAAAAAA"},
		{"previous-secret-expires-at", "2026-01-02T03:04:05Z"},
		{"short", "true"},
	} {
		encoded := base64.StdEncoding.EncodeToString([]byte(public.value))
		if got := found(t, public.key, encoded, public.value+" "+encoded); len(got) != 0 {
			t.Errorf("%s is taken for a secret: %v", public.key, got)
		}
	}
}

// found returns the leaks of a value in a text.
func found(t *testing.T, key, encoded, text string) []string {
	t.Helper()
	s := newSearch(t.TempDir(), func() {})
	for _, form := range formsOf(key, encoded) {
		s.Secret(form, key)
	}
	fmt.Fprintf(s.Text("log"), "a line\nanother with %s in it\n", text) //nolint:errcheck // End tells
	result, err := s.End()
	harness.Must(t, err)
	if len(result.Leaks) > 0 && !slices.Contains(result.Leaks, key+" is in log, line 2") {
		t.Errorf("leaks are %q", result.Leaks)
	}
	return result.Leaks
}

// An index finds the same as a separate search for each needle.
func TestAnIndexFindsEachNeedleWhereItFirstIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Few letters, so that needles share prefixes and overlap.
		needles := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab]{16,20}`), 1, 8, rapid.ID).Draw(t, "needles")
		part := rapid.OneOf(rapid.SampledFrom(needles), rapid.StringMatching(`[abc]{0,20}`))
		text := []byte(strings.Join(rapid.SliceOfN(part, 0, 10).Draw(t, "text"), ""))
		want := map[string]int{}
		for _, needle := range needles {
			if at := bytes.Index(text, []byte(needle)); at >= 0 {
				want[needle] = at
			}
		}
		harness.Same(t, "first places", want, newIndex(slices.Values(needles)).find(text))
	})
}
