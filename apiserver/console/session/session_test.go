package session

import (
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/test/harness"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// sealer returns a Sealer with keys of those names, the newest first.
func sealer(names ...string) Sealer {
	return Sealer{Keys: func(purpose string) (keys [][]byte) {
		for _, name := range names {
			key := sha256.Sum256([]byte(purpose + name))
			keys = append(keys, key[:])
		}
		return keys
	}}
}

func with(values ...string) *http.Request {
	request := httptest.NewRequest(http.MethodGet, Path, http.NoBody)
	for _, value := range values {
		request.AddCookie(&http.Cookie{Name: CookieName, Value: value})
	}
	return request
}

func TestASessionGivesTheKeyItWasMadeOfAndNoChangeOfItDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringMatching(`[A-Za-z0-9._-]{1,600}`).Draw(t, "key")
		s := sealer("a")
		value := s.Cookie(key, true, now).Value
		if got := s.APIKey(with(value), now); got != key {
			t.Fatalf("it gives %q of %q", got, key)
		}
		changed := []byte(value)
		at := rapid.IntRange(0, len(changed)-1).Draw(t, "at")
		changed[at] = rapid.ByteRange('A', 'z').Draw(t, "byte")
		if got := s.APIKey(with(string(changed)), now); got != "" && string(changed) != value {
			t.Fatalf("changed, it gives %q", got)
		}
	})
}

func TestASessionEndsWithItsTimeAndWithTheKeysThatSealedIt(t *testing.T) {
	const week = 7 * 24 * time.Hour
	value := sealer("a").Cookie("key", true, now).Value
	for name, c := range map[string]struct {
		sealer Sealer
		after  time.Duration
		want   string
	}{
		"at the last moment":   {sealer("a"), week - time.Second, "key"},
		"when its time is up":  {sealer("a"), week, ""},
		"with a newer key":     {sealer("b", "a"), 0, "key"},
		"with other keys only": {sealer("c", "b"), 0, ""},
	} {
		harness.Same(t, name, c.want, c.sealer.APIKey(with(value), now.Add(c.after)))
	}
	harness.Same(t, "two sessions", "", sealer("a").APIKey(with(value, value), now))
	harness.Same(t, "beside another site's cookie", "key", sealer("a").APIKey(with("another-site", value), now))
	harness.Same(t, "no cookie", "", sealer("a").APIKey(with(), now))
}

func TestATokenHoldsForSessionsOfItsKeyAlone(t *testing.T) {
	s := sealer("a")
	mine, other := with(s.Cookie("key", true, now).Value), with(s.Cookie("another key", true, now).Value)
	token := s.Token(mine, now)
	if !s.Holds(mine, token, now) || !sealer("b", "a").Holds(mine, token, now) {
		t.Error("it does not hold for its session")
	}
	if later := with(s.Cookie("key", true, now.Add(time.Hour)).Value); !s.Holds(later, token, now.Add(time.Hour)) {
		t.Error("it does not hold after a new login with the same key")
	}
	if s.Holds(other, token, now) || s.Holds(with(), token, now) || s.Holds(mine, "", now) || sealer("b").Holds(mine, token, now) {
		t.Error("it holds for another")
	}
}

func FuzzAPIKey(f *testing.F) {
	s := sealer("a", "b")
	f.Add(s.Cookie("key", false, now).Value)
	f.Add("")
	f.Fuzz(func(t *testing.T, value string) {
		if got := s.APIKey(with(value), now); got != "" && got != "key" {
			t.Errorf("%q gives %q", value, got)
		}
	})
}
