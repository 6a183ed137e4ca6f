package signatures

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func text(key []byte) string { return secretPrefix + base64.StdEncoding.EncodeToString(key) }

// The test vector of the standard's own reference libraries.
func TestSignatureOfTheStandard(t *testing.T) {
	secret, err := ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	harness.Must(t, err)
	signed, err := Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), `{"test": 2432232314}`, []Expiring{{Secret: secret}})
	harness.Must(t, err)
	harness.Same(t, "the header", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", Header(signed))
	sum := sha256.Sum256([]byte(Header(signed)))
	harness.Same(t, "the digest of what is sent", hex.EncodeToString(sum[:]), signed[0].Digest())
}

func TestASecretIsReadInTheFormOfTheStandardAlone(t *testing.T) {
	cases := []struct {
		reason, text string
		refused      string
	}{
		{"the shortest key", text(make([]byte, 24)), ""},
		{"the longest key", text(make([]byte, 64)), ""},
		{"a line break at the end, as files have one", text(make([]byte, 32)) + "\n", ""},
		{"a key too short to be safe", text(make([]byte, 23)), "23 bytes"},
		{"a key longer than the standard allows", text(make([]byte, 65)), "65 bytes"},
		{"no prefix", strings.TrimPrefix(text(make([]byte, 32)), secretPrefix), "does not begin with whsec_"},
		{"nothing", "", "does not begin with whsec_"},
		{"the alphabet of URLs, which the libraries do not read", secretPrefix + strings.Repeat("-_-_", 8), "not base64"},
		{"no padding", strings.TrimRight(text(make([]byte, 32)), "="), "not base64"},
		{"a line break inside", secretPrefix + strings.Repeat("A", 20) + "\n" + strings.Repeat("A", 20), "not base64"},
	}
	for _, c := range cases {
		_, err := ParseSecret(c.text)
		harness.ErrorContains(t, c.reason, err, c.refused)
	}
}

func TestAFreshSecretIsOneThatIsRead(t *testing.T) {
	secret, text := NewSecret()
	read, err := ParseSecret(text)
	if err != nil || read.ID() != secret.ID() {
		t.Fatalf("got %v, %v", read, err)
	}
	if _, other := NewSecret(); other == text {
		t.Error("two fresh secrets are the same")
	}
}

func TestNoFormatGivesASecretAway(t *testing.T) {
	secret, text := NewSecret()
	key := strings.TrimPrefix(text, secretPrefix)
	expiring := Expiring{Secret: secret, ExpiresAt: new(v1alpha1.NewTime(noon))}
	signed, err := Sign("id", noon, "payload", []Expiring{expiring})
	harness.Must(t, err)
	signature := strings.TrimPrefix(Header(signed), "v1,")
	for _, value := range []any{secret, &secret, expiring, []Expiring{expiring}, signed, signed[0], Secrets{current: secret, previous: &expiring}} {
		for _, verb := range []string{"%v", "%+v", "%s", "%x", "%q", "%d"} {
			printed := fmt.Sprintf(verb, value)
			for _, kept := range []string{key, signature, hex.EncodeToString(secret.key()), fmt.Sprint(secret.key()), hex.EncodeToString([]byte(signature))} {
				if strings.Contains(printed, kept) {
					t.Errorf("%s of a %T prints what it must not", verb, value)
				}
			}
		}
	}
	encoded, err := json.Marshal([]any{secret, expiring})
	if err != nil || strings.Contains(string(encoded), key) {
		t.Errorf("got %s, %v", encoded, err)
	}
}

func TestThePreviousSecretIsValidUntilItsEnd(t *testing.T) {
	first, firstText := NewSecret()
	second, secondText := NewSecret()
	data := func(pairs ...string) map[string][]byte {
		out := map[string][]byte{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = []byte(pairs[i+1])
		}
		return out
	}
	const at = "2026-03-01T13:00:00+01:00" // noon
	cases := []struct {
		reason  string
		data    map[string][]byte
		before  []string // valid a second before noon
		after   []string // valid at noon
		refused string
	}{
		{"one secret", data("secret", firstText), []string{first.ID()}, []string{first.ID()}, ""},
		{"two, the newest first, until the older one's end",
			data("secret", firstText, "previous-secret", secondText, "previous-secret-expires-at", at),
			[]string{first.ID(), second.ID()}, []string{first.ID()}, ""},
		{"two, each value with a line break at its end, as files have one",
			data("secret", firstText+"\n", "previous-secret", secondText+"\n", "previous-secret-expires-at", at+"\n"),
			[]string{first.ID(), second.ID()}, []string{first.ID()}, ""},
		{"the same one twice is one",
			data("secret", firstText, "previous-secret", firstText, "previous-secret-expires-at", at),
			[]string{first.ID()}, []string{first.ID()}, ""},
		{"an end without a secret means nothing", data("secret", firstText, "previous-secret-expires-at", "soon"),
			[]string{first.ID()}, []string{first.ID()}, ""},
		{"no secret", data("token", firstText), nil, nil, `key "secret"`},
		{"an older one without an end", data("secret", firstText, "previous-secret", secondText), nil, nil, `key "previous-secret-expires-at"`},
		{"an older one that is none", data("secret", firstText, "previous-secret", "x", "previous-secret-expires-at", at), nil, nil, `key "previous-secret"`},
	}
	ids := func(secrets []Expiring) []string {
		var out []string
		for _, s := range secrets {
			out = append(out, s.ID())
		}
		return out
	}
	for _, c := range cases {
		secrets, err := ParseSecrets(c.data)
		harness.ErrorContains(t, c.reason, err, c.refused)
		if err != nil || c.refused != "" {
			continue
		}
		harness.Same(t, fmt.Sprintf("%s, before the end", c.reason),
			c.before, ids(secrets.Valid(noon.Add(-time.Second))))
		harness.Same(t, fmt.Sprintf("%s, after it", c.reason), c.after, ids(secrets.Valid(noon)))
	}
}

// No error contains any part of the input.
func TestErrorsHoldNoSecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inner := rapid.StringMatching(`[A-Za-z0-9+/]{12,80}`).Draw(t, "secret")
		for _, given := range []string{inner, secretPrefix + inner, secretPrefix + inner + "!"} {
			_, err := ParseSecrets(map[string][]byte{v1alpha1.WebhookSecretKey: []byte(given)})
			if err != nil && strings.Contains(err.Error(), inner) {
				t.Fatalf("the error holds the secret: %v", err)
			}
		}
	})
}

func TestTokensAreBounded(t *testing.T) {
	cases := []struct {
		reason, header string
		want           int
	}{
		{"one", "v1,a", 1},
		{"a header with three", "v1,a v1,b v1a,c", 3},
		{"nothing", " ", 0},
		{"as many as are read", strings.Repeat("a ", 16), 16},
		{"more than that", strings.Repeat("a ", 17), 0},
		{"too long", strings.Repeat("a", 4097), 0},
	}
	for _, c := range cases {
		harness.Same(t, c.reason, c.want, len(Tokens(c.header)))
	}
}

func FuzzParseSecret(f *testing.F) {
	f.Add(text(make([]byte, 32)))
	f.Add("whsec_")
	f.Add("whsec_AAAA\r\nAAAA")
	f.Fuzz(func(t *testing.T, given string) {
		secret, err := ParseSecret(given)
		if err != nil {
			return
		}
		// One secret has one spelling.
		if canonical := text(secret.key()); canonical != strings.TrimSpace(given) {
			t.Errorf("%q was read as %q", given, canonical)
		}
	})
}
