package signatures

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// The headers of a signed webhook.
const (
	HeaderID        = standardwebhooks.HeaderWebhookID
	HeaderTimestamp = standardwebhooks.HeaderWebhookTimestamp
	HeaderSignature = standardwebhooks.HeaderWebhookSignature
)

// Signature is a signature as it is sent: "v1,<base64>".
type Signature struct {
	text   func() string // a function for the same reason as Secret.key
	secret Expiring
}

// Sign signs the payload as a message with that id at that time, to the second, once with each secret.
func Sign(id string, at time.Time, payload string, secrets []Expiring) ([]Signature, error) {
	out := make([]Signature, 0, len(secrets))
	for _, secret := range secrets {
		webhook, err := standardwebhooks.NewWebhookRaw(secret.key())
		if err != nil {
			return nil, fmt.Errorf("sign with %s: %w", secret.Secret, err)
		}
		text, err := webhook.Sign(id, at, []byte(payload))
		if err != nil {
			return nil, fmt.Errorf("sign with %s: %w", secret.Secret, err)
		}
		out = append(out, Signature{text: func() string { return text }, secret: secret})
	}
	return out, nil
}

// Header returns the value of the signature header, in the order of the secrets.
func Header(signatures []Signature) string {
	texts := make([]string, len(signatures))
	for i, s := range signatures {
		texts[i] = s.text()
	}
	return strings.Join(texts, " ")
}

// Digest returns the digest that is stored instead of the signature.
func (s Signature) Digest() string { return hex.EncodeToString(digest(s.text())) }

// Secret returns the secret that made the signature.
func (s Signature) Secret() Expiring { return s.secret }

// Format keeps the signature out of logs: with it, a message can be passed off as ours.
func (s Signature) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "signature by %s", s.secret.Secret)
}

func digest(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
