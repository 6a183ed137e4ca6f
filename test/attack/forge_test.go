package attack

import (
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"hash"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/internal/tokens"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// object is a JSON object.
type object map[string]any

func (o object) with(changes object) object {
	out := maps.Clone(o)
	for name, value := range changes {
		if out[name] = value; value == nil {
			delete(out, name)
		}
	}
	return out
}

// forger makes tokens in the service's format. It even holds the private key, to make tokens that
// only a mistake of the service itself could produce.
type forger struct {
	// header and claims are those of a valid token, good.
	header, claims object
	good           string
	private        ed25519.PrivateKey
	// stranger is the attacker's own key.
	stranger ed25519.PrivateKey
	// public holds the public key in every form in which it could be mistaken for a shared secret.
	public map[string][]byte
}

func newForger(t *testing.T, o *tenant) *forger {
	t.Helper()
	f := &forger{good: o.token, header: parsed(t, o.token, 0), claims: parsed(t, o.token, 1), public: map[string][]byte{}}
	// As a floating-point number it would be encoded differently.
	for _, name := range []string{"iat", "exp"} {
		f.claims[name] = int64(f.claims[name].(float64))
	}
	secret := &corev1.Secret{}
	harness.Must(t, target.env.Client.Get(t.Context(), client.ObjectKey{Namespace: testenv.SystemNamespace, Name: tokens.SigningKeySecret}, secret))
	block, _ := pem.Decode(secret.Data[tokens.SigningKeyDataKey])
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	harness.Must(t, err)
	f.private = key.(ed25519.PrivateKey)
	_, f.stranger, err = ed25519.GenerateKey(rand.Reader)
	harness.Must(t, err)
	f.readPublic(t)
	return f
}

func (f *forger) readPublic(t *testing.T) {
	t.Helper()
	published := &corev1.ConfigMap{}
	harness.Must(t, target.env.Client.Get(t.Context(), client.ObjectKey{Namespace: testenv.SystemNamespace, Name: tokens.SigningKeysConfigMap}, published))
	for _, text := range published.Data {
		f.public["PEM"] = []byte(text)
		f.public["PEM without its line end"] = []byte(strings.TrimSpace(text))
		f.public["PEM with Windows' line ends"] = []byte(strings.ReplaceAll(text, "\n", "\r\n"))
		block, _ := pem.Decode([]byte(text))
		f.public["DER"] = block.Bytes
		f.public["base64 of DER"] = []byte(base64.StdEncoding.EncodeToString(block.Bytes))
	}
	raw := f.private.Public().(ed25519.PublicKey)
	f.public["raw"] = raw
	f.public["base64url"] = []byte(base64.RawURLEncoding.EncodeToString(raw))
	f.public["kid"] = []byte(f.header["kid"].(string))
	f.public["nothing"] = nil
}

func encode(value any) string {
	if text, ok := value.(string); ok {
		return base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text(value)))
}

// signed signs header and claims, which are objects or JSON texts, with an Ed25519 key.
func signed(key ed25519.PrivateKey, header, claims any) string {
	text := encode(header) + "." + encode(claims)
	signature, err := key.Sign(nil, []byte(text), crypto.Hash(0))
	if err != nil {
		panic(err) // Ed25519 signs everything
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// maced signs with a shared secret.
func maced(algorithm func() hash.Hash, secret []byte, header, claims any) string {
	text := encode(header) + "." + encode(claims)
	mac := hmac.New(algorithm, secret)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// forgeries returns tokens that must all be refused, keyed by their defect.
func (f *forger) forgeries(t *testing.T, victim *tenant) map[string]string {
	t.Helper()
	out := map[string]string{}
	f.otherAlgorithms(out)
	f.otherKeys(out)
	f.otherClaims(t, out, victim)
	f.mangled(out)
	return out
}

func (f *forger) otherAlgorithms(out map[string]string) {
	signature := f.good[strings.LastIndexByte(f.good, '.')+1:]
	for _, name := range []string{"none", "None", "NONE", "nOnE", "noNe", "none ", " none", "none\u0000", "", "null"} {
		header := f.header.with(object{"alg": name})
		out["alg "+name] = encode(header) + "." + encode(f.claims) + "."
		out["alg "+name+", no end"] = encode(header) + "." + encode(f.claims)
		out["alg "+name+", signature kept"] = encode(header) + "." + encode(f.claims) + "." + signature
	}
	for _, value := range []any{nil, 0, true, []string{"EdDSA"}, object{"alg": "EdDSA"}} {
		out["alg "+encode(object{"alg": value})] = signed(f.private, f.header.with(object{"alg": value}), f.claims)
	}
	for _, name := range []string{"eddsa", "EDDSA", "Ed25519", "ES256", "RS256", "PS256", "HS256", "ES512", "EdDSA ", "dir", "A256KW", "RSA-OAEP"} {
		out["signed, and alg "+name] = signed(f.private, f.header.with(object{"alg": name}), f.claims)
	}
	for form, secret := range f.public {
		for name, algorithm := range map[string]func() hash.Hash{"HS256": sha256.New, "HS384": sha512.New384, "HS512": sha512.New} {
			out[name+" with the public key as "+form] = maced(algorithm, secret, f.header.with(object{"alg": name}), f.claims)
			out["EdDSA, MAC of "+name+" with the public key as "+form] = maced(algorithm, secret, f.header, f.claims)
		}
	}
}

func (f *forger) otherKeys(out map[string]string) {
	own := f.stranger.Public().(ed25519.PublicKey)
	jwk := object{"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(own), "kid": "mine", "use": "sig", "alg": "EdDSA"}
	out["another's key"] = signed(f.stranger, f.header, f.claims)
	for _, kid := range []any{
		"mine", "", nil, 0, 1.5, true, []string{f.header["kid"].(string)}, object{}, "../../../../etc/passwd", "/dev/null", "file:///dev/null", "http://127.0.0.1/key", "https://127.0.0.1:1/key.pem",
		"' OR 1=1 --", "' UNION SELECT 'key", "0", "null", "*", "findings-signing-key", f.header["kid"].(string) + "\x00", f.header["kid"].(string) + ".pem", strings.ToUpper(f.header["kid"].(string)),
		" " + f.header["kid"].(string), strings.Repeat("k", 2000), "$(id)", "|id", "../" + f.header["kid"].(string),
	} {
		header := f.header.with(object{"kid": kid})
		out["another's key and kid "+encode(header)] = signed(f.stranger, header, f.claims)
		out["our key and kid "+encode(header)] = signed(f.private, header, f.claims)
		out["an empty secret and kid "+encode(header)] = maced(sha256.New, nil, header.with(object{"alg": "HS256"}), f.claims)
	}
	for name, value := range map[string]any{
		"jwk": jwk, "jku": "https://127.0.0.1:1/jwks.json", "x5u": "https://127.0.0.1:1/cert.pem", "x5c": []string{base64.StdEncoding.EncodeToString(own)},
		"x5t": "AAAA", "x5t#S256": "AAAA", "crit": []string{"exp"}, "zip": "DEF", "cty": "JWT", "b64": false, "epk": jwk, "enc": "A256GCM",
	} {
		out["another's key and "+name] = signed(f.stranger, f.header.with(object{name: value}), f.claims)
		out["another's key, its kid, and "+name] = signed(f.stranger, f.header.with(object{name: value, "kid": "mine"}), f.claims)
		out["another's key, no kid, and "+name] = signed(f.stranger, f.header.with(object{name: value, "kid": nil}), f.claims)
	}
	// RFC 7515, section 4.1.11: tokens with unknown critical headers must be refused.
	out["our key and something critical"] = signed(f.private, f.header.with(object{"crit": []string{"bound-to"}, "bound-to": "x"}), f.claims)
}

// otherClaims adds tokens that are signed with the service's own key, but whose claims must be
// rejected.
func (f *forger) otherClaims(t *testing.T, out map[string]string, victim *tenant) {
	t.Helper()
	theirs := parsed(t, victim.token, 1)
	now := time.Now().Unix()
	for reason, changes := range map[string]object{
		"expired":                            {"exp": now - 1, "iat": now - 100},
		"expired long ago":                   {"exp": 1, "iat": 0},
		"expires as it is issued":            {"exp": now, "iat": now},
		"expires before it is issued":        {"exp": now + 10, "iat": now + 100},
		"not yet valid":                      {"nbf": now + 3600},
		"not valid for a century":            {"nbf": now + 100*365*86400},
		"expiry as text":                     {"exp": "9999999999"},
		"expiry of no number":                {"exp": "NaN"},
		"no expiry":                          {"exp": nil},
		"an expiry of null":                  {"exp": json.RawMessage("null")},
		"a negative expiry":                  {"exp": -1},
		"no time of issue":                   {"iat": nil},
		"another issuer":                     {"iss": "https://issuer.example.com"},
		"an issuer in capitals":              {"iss": "FINDINGS-OPERATOR"},
		"no issuer":                          {"iss": nil},
		"issuers":                            {"iss": []string{"findings-operator"}},
		"another organization's sub":         {"sub": theirs["sub"]},
		"another organization's sub and jti": {"sub": theirs["sub"], "jti": theirs["jti"]},
		"another organization":               {"org": theirs["org"]},
		"another organization and its sub":   {"org": theirs["org"], "sub": theirs["sub"]},
		"another key's jti":                  {"jti": theirs["jti"]},
		"no jti":                             {"jti": nil},
		"an empty jti":                       {"jti": ""},
		"no sub":                             {"sub": nil},
		"an empty sub":                       {"sub": ""},
		"a list of subs":                     {"sub": []any{f.claims["sub"], theirs["sub"]}},
		"no organization":                    {"org": nil},
		"an organization with a wild card":   {"org": "*"},
		"an organization as a namespace":     {"org": "org-" + victim.name},
	} {
		out[reason] = signed(f.private, f.header, f.claims.with(changes))
	}
	f.duplicated(out, theirs)
}

// duplicated adds tokens that two parsers can read differently.
func (f *forger) duplicated(out map[string]string, theirs object) {
	claims, header := text(f.claims), text(f.header)
	for _, name := range []string{"sub", "org", "jti", "iss"} {
		value := text(theirs[name])
		if name == "iss" {
			value = `"x"`
		}
		out["two "+name+", ours last"] = signed(f.private, header, `{"`+name+`":`+value+`,`+claims[1:])
		out["two "+name+", ours first"] = signed(f.private, header, claims[:len(claims)-1]+`,"`+name+`":`+value+`}`)
	}
	out["two exp, the good one last"] = signed(f.private, header, `{"exp":1,`+claims[1:])
	out["the same claim twice"] = signed(f.private, header, `{"sub":`+text(f.claims["sub"])+`,`+claims[1:])
	out["the same claim in two cases"] = signed(f.private, header, `{"SUB":`+text(theirs["sub"])+`,`+claims[1:])
	out["the same claim with a long s"] = signed(f.private, header, `{"\u017fub":`+text(theirs["sub"])+`,`+claims[1:])
	out["the same claim, once escaped"] = signed(f.private, header, `{"s\u0075b":`+text(f.claims["sub"])+`,`+claims[1:])
	out["two kid"] = signed(f.private, `{"kid":"mine",`+header[1:], claims)
	out["two alg, none first"] = signed(f.private, `{"alg":"none",`+header[1:], claims)
	out["two alg, none last"] = signed(f.private, header[:len(header)-1]+`,"alg":"none"}`, claims)
	out["two alg, unsigned"] = encode(`{"alg":"none",`+header[1:]) + "." + encode(claims) + "."
	out["claims and something behind"] = signed(f.private, header, claims+claims)
	out["claims that are a list"] = signed(f.private, header, "["+claims+"]")
	out["claims that are nothing"] = signed(f.private, header, "null")
}

func text(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		panic(err) // only what JSON can say is given
	}
	return string(content)
}

// parsed returns a part of a token, which is a JSON object.
func parsed(t *testing.T, token string, part int) object {
	t.Helper()
	content, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[part])
	harness.Must(t, err)
	return harness.Decoded[object](t, content)
}

// mangled adds the bytes of a valid token, rearranged.
func (f *forger) mangled(out map[string]string) {
	parts := strings.Split(f.good, ".")
	header, claims, signature := parts[0], parts[1], parts[2]
	raw, _ := base64.RawURLEncoding.DecodeString(signature)
	for reason, token := range map[string]string{
		"no signature":                     header + "." + claims + ".",
		"no signature and no point":        header + "." + claims,
		"a cut signature":                  header + "." + claims + "." + signature[:len(signature)-1],
		"half a signature":                 header + "." + claims + "." + signature[:len(signature)/2],
		"a longer signature":               header + "." + claims + "." + signature + "AA",
		"two signatures":                   header + "." + claims + "." + signature + "." + signature,
		"a signature of zeros":             header + "." + claims + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64)),
		"a padded signature":               header + "." + claims + "." + base64.URLEncoding.EncodeToString(raw),
		"a signature in standard base64":   header + "." + claims + "." + base64.StdEncoding.EncodeToString(append([]byte{0xff, 0xef}, raw[2:]...)),
		"only the signature":               ".." + signature,
		"no header":                        "." + claims + "." + signature,
		"no claims":                        header + ".." + signature,
		"claims and header exchanged":      claims + "." + header + "." + signature,
		"points alone":                     "..",
		"many points":                      strings.Repeat(".", 4000),
		"five parts, as of an encrypted":   header + "." + claims + "." + signature + "." + claims + "." + signature,
		"JSON in place of the compact":     text(object{"payload": claims, "protected": header, "signature": signature}),
		"upper case":                       strings.ToUpper(f.good),
		"at the end a point":               f.good + ".",
		"at the end an A":                  f.good + "A",
		"as long as may be":                f.good + strings.Repeat("A", tokens.MaxLength-len(f.good)),
		"a little longer than may be":      f.good + strings.Repeat("A", tokens.MaxLength-len(f.good)+1),
		"percent-encoded points":           strings.ReplaceAll(f.good, ".", "%2e"),
		"other letters that look the same": strings.Replace(f.good, "e", "\u0435", 1),
	} {
		out[reason] = token
	}
	// S and S plus the group order both verify if the range is not checked (RFC 8032, section
	// 5.1.7).
	malleable := append([]byte(nil), raw...)
	order := []byte{0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10}
	carry := 0
	for i := range 32 {
		sum := int(malleable[32+i]) + int(order[i]) + carry
		malleable[32+i], carry = byte(sum), sum>>8
	}
	out["a second signature for the same"] = header + "." + claims + "." + base64.RawURLEncoding.EncodeToString(malleable)
}
