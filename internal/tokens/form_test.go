package tokens

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Only what two readers could read differently, or what sets a condition, is refused: see
// TestForgedTokensAreRefused.
func TestSignedTokensOfAnotherHarmlessFormAreAccepted(t *testing.T) {
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
}
