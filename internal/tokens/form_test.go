package tokens

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// A valid signature is not enough: the signed content must be unambiguous, and have no conditions
// that are not checked here.
func TestSignedTokensOfAnotherFormAreRefused(t *testing.T) {
	key := newKey(t)
	header := `{"alg":"EdDSA","kid":"` + key.ID() + `","typ":"JWT"}`
	claims := fmt.Sprintf(`{"iss":"findings-operator","sub":"u","org":"acme","jti":"token-1","iat":%d,"exp":%d}`, issued.Unix(), issued.Unix()+60)
	signText := func(header, claims string) string {
		text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
		return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(key.private, []byte(text)))
	}
	also := func(object, member string) string { return "{" + member + "," + object[1:] }
	for reason, token := range map[string]string{
		"as it should be":         signText(header, claims),
		"a claim nobody knows":    signText(header, also(claims, `"new":{"sub":"x","sub":"y"}`)),
		"a header nobody knows":   signText(also(header, `"new":1`), claims),
		"with blanks in between":  signText(strings.ReplaceAll(header, ",", " ,\n"), claims),
		"members in another turn": signText(header, strings.Replace(also(claims, `"jti":"token-1"`), `"jti":"token-1","iat"`, `"iat"`, 1)),
	} {
		_, err := key.Public().VerifySignature(token)
		harness.NoError(t, reason, err)
	}
	for reason, token := range map[string]string{
		"a claim twice":              signText(header, also(claims, `"sub":"x"`)),
		"the same claim twice":       signText(header, also(claims, `"sub":"u"`)),
		"a claim in two cases":       signText(header, also(claims, `"SUB":"x"`)),
		"a claim with a long s":      signText(header, also(claims, `"\u017fub":"x"`)),
		"a claim twice, one escaped": signText(header, also(claims, `"s\u0075b":"x"`)),
		"a header twice":             signText(also(header, `"kid":"x"`), claims),
		"an algorithm twice":         signText(also(header, `"alg":"none"`), claims),
		"a critical member":          signText(also(header, `"crit":["x"]`), claims),
		"not valid before a time":    signText(header, also(claims, `"nbf":1`)),
		"an expiry as text":          signText(header, strings.Replace(claims, `"exp":`, `"exp":"`, 1)[:len(claims)]+`"}`),
	} {
		if _, err := key.Public().VerifySignature(token); err == nil {
			t.Errorf("%s: accepted", reason)
		}
	}
}
