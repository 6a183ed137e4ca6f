package tokens

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/test/harness"
)

var issued = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func someClaims() Claims {
	return Claims{
		KeyUID:       "9f0a5c1e-8a2b-4c65-9d7e-0b1c2d3e4f50",
		Organization: "acme",
		ID:           "token-1",
		IssuedAt:     issued,
		ExpiresAt:    issued.Add(time.Hour),
	}
}

func newKey(t testing.TB) SigningKey {
	t.Helper()
	return GenerateSigningKey()
}

func sign(t testing.TB, key SigningKey, claims Claims) string {
	t.Helper()
	token, err := key.Sign(claims)
	harness.Must(t, err)
	return token
}

func TestTokenSaysWhatWasSigned(t *testing.T) {
	key := newKey(t)
	got, err := key.Public().VerifySignature(sign(t, key, someClaims()))
	harness.Must(t, err)
	harness.Same(t, "verified", Verified{Claims: someClaims(), KeyID: key.ID()}, got)
}

func TestTokenEndsAtItsExpiry(t *testing.T) {
	key := newKey(t)
	token := sign(t, key, someClaims())
	end := someClaims().ExpiresAt
	verified, err := key.Public().VerifySignature(token)
	if err != nil {
		t.Fatalf("the signature of an expired token is still good: %v", err)
	}
	if verified.ExpiredAt(end.Add(-time.Nanosecond)) || !verified.ExpiredAt(end) {
		t.Errorf("it has to be valid until %s and not then", end)
	}
}

// The example of RFC 8037, appendix A.3.
func TestThumbprintIsThatOfTheRFC(t *testing.T) {
	public, err := base64.RawURLEncoding.DecodeString("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
	harness.Must(t, err)
	harness.Same(t, "thumbprint", "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", thumbprint(public))
}

// forge builds a token from raw parts; signer gets the signing input.
func forge(header, payload any, signer func([]byte) []byte) string {
	encode := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	input := encode(header) + "." + encode(payload)
	return input + "." + base64.RawURLEncoding.EncodeToString(signer([]byte(input)))
}

type object = map[string]any

// At least one token for each error. test/attack forges many more.
func TestForgedTokensAreRefused(t *testing.T) {
	key, other := newKey(t), newKey(t)
	set := key.Public()
	good := sign(t, key, someClaims())
	header := object{"alg": "EdDSA", "typ": "JWT", "kid": key.ID()}
	overlay := func(base, changes object) object {
		out := maps.Clone(base)
		maps.Copy(out, changes)
		maps.DeleteFunc(out, func(_ string, value any) bool { return value == nil })
		return out
	}
	payload := func(changes object) object {
		return overlay(object{
			"iss": Issuer, "sub": "uid", "org": "acme", "jti": "1",
			"iat": issued.Unix(), "exp": issued.Add(time.Hour).Unix(),
		}, changes)
	}
	with := func(changes object) object { return overlay(header, changes) }
	ours := func(input []byte) []byte { return ed25519.Sign(key.private, input) }
	theirs := func(input []byte) []byte { return ed25519.Sign(other.private, input) }
	hmacOurs := func(input []byte) []byte {
		mac := hmac.New(sha256.New, set.keys[key.ID()])
		mac.Write(input)
		return mac.Sum(nil)
	}
	none := func([]byte) []byte { return nil }
	text := harness.JSON(t, payload(nil))
	twice := json.RawMessage(`{"sub":"x",` + string(text[1:]))

	// The builder must be able to make a valid token, else the cases below prove nothing.
	if _, err := set.VerifySignature(forge(header, payload(nil), ours)); err != nil {
		t.Fatalf("the test's own builder makes no good token: %v", err)
	}

	cases := map[string]struct {
		reason string
		token  string
		want   error
	}{
		"too long":       {"refused by its length, before any work", good + strings.Repeat("A", MaxLength), ErrMalformed},
		"padding":        {"one spelling for each token", good + "=", ErrMalformed},
		"space":          {"one spelling for each token", " " + good, ErrMalformed},
		"newline":        {"base64 decoders skip newlines; a cache key would not", good[:len(good)-4] + "\n" + good[len(good)-4:], ErrMalformed},
		"alg none":       {"none is no algorithm", forge(with(object{"alg": "none"}), payload(nil), none), ErrSignature},
		"alg first":      {"the algorithm is refused before a key is looked for", forge(with(object{"alg": "HS256", "kid": "unknown"}), payload(nil), hmacOurs), ErrSignature},
		"kid file name":  {"the ConfigMap's key is not the key's name", forge(with(object{"kid": key.ID() + ".pem"}), payload(nil), ours), ErrUnknownKey},
		"wrong key":      {"another key's signature under our name", forge(header, payload(nil), theirs), ErrSignature},
		"unknown key":    {"another key under its own name", sign(t, other, someClaims()), ErrUnknownKey},
		"no exp":         {"a token has an end", forge(header, payload(object{"exp": nil}), ours), ErrClaims},
		"other iss":      {"the issuer is ours", forge(header, payload(object{"iss": "someone"}), ours), ErrClaims},
		"claim twice":    {"two readers could read two keys", forge(header, twice, ours), ErrClaims},
		"crit":           {"no extension is known", forge(with(object{"crit": []string{"x"}}), payload(nil), ours), ErrMalformed},
		"nbf":            {"when a token begins is not checked", forge(header, payload(object{"nbf": 1}), ours), ErrClaims},
		"exp text":       {"a time is a number", forge(header, payload(object{"exp": "9999999999"}), ours), ErrClaims},
		"payload array":  {"claims are an object", forge(header, []int{1}, ours), ErrMalformed},
		"payload absent": {"claims are an object", forge(header, nil, ours), ErrClaims},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := set.VerifySignature(tc.token); !errors.Is(err, tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, err, tc.want)
			}
		})
	}
}

func TestErrorsQuoteNothingOfTheToken(t *testing.T) {
	key := newKey(t)
	for _, token := range []string{
		"hunter2.hunter2.hunter2",
		forge(object{"alg": "hunter2"}, object{}, func([]byte) []byte { return nil }),
		forge(object{"alg": "EdDSA", "kid": "hunter2"}, object{}, func([]byte) []byte { return nil }),
	} {
		_, err := key.Public().VerifySignature(token)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error is %v; want one that quotes nothing", err)
		}
	}
}

func TestSignRefusesClaimsThatVerifyWould(t *testing.T) {
	key := newKey(t)
	cases := map[string]func(*Claims){
		"no key":          func(c *Claims) { c.KeyUID = "" },
		"no organization": func(c *Claims) { c.Organization = "" },
		"no id":           func(c *Claims) { c.ID = "" },
		"no life":         func(c *Claims) { c.ExpiresAt = c.IssuedAt },
		"too long":        func(c *Claims) { c.Organization = strings.Repeat("x", MaxLength) },
	}
	for name, change := range cases {
		claims := someClaims()
		change(&claims)
		if token, err := key.Sign(claims); !errors.Is(err, ErrClaims) || token != "" {
			t.Errorf("%s: got error %v, want ErrClaims and no token", name, err)
		}
	}
}

func TestEveryOneByteChangeIsRefused(t *testing.T) {
	key := newKey(t)
	set, token := key.Public(), sign(t, key, someClaims())
	for i := range token {
		for _, b := range []byte{'A', 'B', '_', '.', '=', '\n', token[i] ^ 1, token[i] ^ 0x80} {
			if b == token[i] {
				continue
			}
			changed := token[:i] + string([]byte{b}) + token[i+1:]
			if _, err := set.VerifySignature(changed); err == nil {
				t.Fatalf("byte %d changed from %q to %q: accepted", i, token[i], b)
			}
		}
	}
}

func TestSignThenVerifyRoundTrips(t *testing.T) {
	key := newKey(t)
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Int64Range(0, 1<<33).Draw(t, "from")
		claims := Claims{
			KeyUID:       types.UID(rapid.StringMatching(`[0-9a-f-]{1,36}`).Draw(t, "uid")),
			Organization: rapid.StringMatching(`[a-z][a-z0-9-]{0,58}`).Draw(t, "organization"),
			ID:           rapid.StringMatching(`[a-z0-9-]{1,64}`).Draw(t, "id"),
			IssuedAt:     time.Unix(from, 0).UTC(),
			ExpiresAt:    time.Unix(from+rapid.Int64Range(1, 1<<33).Draw(t, "life"), 0).UTC(),
		}
		token, err := key.Sign(claims)
		harness.Must(t, err)
		got, err := key.Public().VerifySignature(token)
		harness.Must(t, err)
		harness.Same(t, "verified", claims, got.Claims)
	})
}

func TestKeysRoundTripThroughTheirStorage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.SliceOfN(rapid.Byte(), ed25519.SeedSize, ed25519.SeedSize).Draw(t, "seed")
		key := newSigningKey(ed25519.NewKeyFromSeed(seed))
		secret, err := encodeSigningKey(key)
		harness.Must(t, err)
		back, err := decodeSigningKey(map[string][]byte{SigningKeyDataKey: secret}, SigningKeyDataKey)
		if err != nil || !bytes.Equal(back.private, key.private) || back.ID() != key.ID() {
			t.Fatalf("the private key came back changed (%v)", err)
		}
		configMap, err := EncodeKeySet(key.Public())
		harness.Must(t, err)
		set, err := DecodeKeySet(configMap)
		if err != nil || !slices.Equal(set.IDs(), []string{key.ID()}) || !bytes.Equal(set.keys[key.ID()], key.Public().keys[key.ID()]) {
			t.Fatalf("the public key came back changed (%v)", err)
		}
	})
}

func TestBadEntryOfTheKeySetLeavesTheOthersInForce(t *testing.T) {
	good, misnamed := newKey(t), newKey(t)
	data, err := EncodeKeySet(good.Public())
	harness.Must(t, err)
	others, err := EncodeKeySet(misnamed.Public())
	harness.Must(t, err)
	x509Only := pem.EncodeToMemory(&pem.Block{Type: publicKeyBlock, Bytes: []byte("no key")})
	data["wrong-name.pem"] = others[misnamed.ID()+".pem"]
	data["no-suffix"] = others[misnamed.ID()+".pem"]
	data["text.pem"] = "hello"
	data["junk.pem"] = string(x509Only)
	data["twice.pem"] = others[misnamed.ID()+".pem"] + others[misnamed.ID()+".pem"]
	set, err := DecodeKeySet(data)
	if err == nil || !slices.Equal(set.IDs(), []string{good.ID()}) {
		t.Fatalf("set holds %v with error %v; want the good key alone, and an error", set.IDs(), err)
	}
	for _, name := range []string{"wrong-name.pem", "no-suffix", "text.pem", "junk.pem", "twice.pem"} {
		if !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
}

func TestSigningKeyOfAnotherKindIsRefusedAndNotQuoted(t *testing.T) {
	key := newKey(t)
	der, err := x509.MarshalPKIXPublicKey(key.private.Public())
	harness.Must(t, err)
	for name, data := range map[string][]byte{
		"absent":     nil,
		"text":       []byte("hunter2"),
		"public key": pem.EncodeToMemory(&pem.Block{Type: publicKeyBlock, Bytes: der}),
		"junk":       pem.EncodeToMemory(&pem.Block{Type: privateKeyBlock, Bytes: []byte("hunter2")}),
	} {
		_, err := decodeSigningKey(map[string][]byte{SigningKeyDataKey: data}, SigningKeyDataKey)
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), hex.EncodeToString([]byte("hunter2"))) {
			t.Errorf("%s: error is %v; want one that quotes nothing", name, err)
		}
	}
}

// FuzzVerify looks for a panic, for a token accepted that was not signed, and for a second
// spelling of one that was.
func FuzzVerify(f *testing.F) {
	seed := sha256.Sum256([]byte("fuzz"))
	key := newSigningKey(ed25519.NewKeyFromSeed(seed[:]))
	good := sign(f, key, someClaims())
	set := key.Public()
	f.Add(good)
	f.Add("")
	f.Add("..")
	f.Add(strings.ReplaceAll(good, ".", ""))
	f.Add(forge(object{"alg": "none", "kid": key.ID()}, object{"sub": "x"}, func([]byte) []byte { return nil }))
	f.Add(forge(object{"alg": "EdDSA", "kid": []int{1}, "crit": []string{"exp"}}, object{"exp": 1e300}, func([]byte) []byte { return []byte("x") }))
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := set.VerifySignature(token); err == nil && token != good {
			t.Fatalf("accepted %q", token)
		}
	})
}

// FuzzDecodeKeySet looks for a panic and for a key under a name that is not its own.
func FuzzDecodeKeySet(f *testing.F) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	harness.Must(f, err)
	data, err := EncodeKeySet(KeySet{keys: map[string]ed25519.PublicKey{thumbprint(public): public}})
	harness.Must(f, err)
	for name, text := range data {
		f.Add(name, text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		set, _ := DecodeKeySet(map[string]string{name: text})
		for id, public := range set.keys {
			if thumbprint(public) != id {
				t.Fatalf("key %s is kept as %s", thumbprint(public), id)
			}
		}
	})
}
