package webhooks

import (
	"crypto/sha256"
	"crypto/subtle"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/signatures"
)

// VerificationStatus is the result of a verification.
type VerificationStatus string

// The verification statuses.
const (
	// Verified: this payload was sent with this signature, whose secret is still valid.
	Verified VerificationStatus = "verified"
	// SignatureMismatch: no attempt of the delivery carried the signature.
	SignatureMismatch VerificationStatus = "signature_mismatch"
	// PayloadMismatch: an attempt carried the signature, over another payload.
	PayloadMismatch VerificationStatus = "payload_mismatch"
	// SecretExpired: this payload was sent with this signature, and its secret is no longer valid.
	SecretExpired VerificationStatus = "secret_expired"
)

// Message returns the sentence for users that describes the status.
func (s VerificationStatus) Message() string {
	switch s {
	case Verified:
		return "The payload was sent with this signature."
	case PayloadMismatch:
		return "The payload differs from the one that was sent."
	case SecretExpired:
		return "The payload was sent with this signature, but the secret that signed it is no longer valid."
	case SignatureMismatch:
	}
	return "The signature is not one that was sent with this delivery."
}

// Valid reports whether a receiver may trust the message.
func (s VerificationStatus) Valid() bool { return s == Verified }

// Sent identifies the payload and the signatures that were sent with a delivery. It does not hold the payload, which
// may take 64 KiB.
type Sent struct {
	payload    [sha256.Size]byte
	signatures []v1alpha1.WebhookSignature
}

// SentWith returns what was sent with the delivery.
func SentWith(delivery *v1alpha1.WebhookDelivery) *Sent {
	return &Sent{sha256.Sum256([]byte(delivery.Spec.Payload)), sentSignatures(delivery)}
}

// Verify is Sent.Verify for a delivery.
func Verify(delivery *v1alpha1.WebhookDelivery, payload, signature string, now time.Time) VerificationStatus {
	return SentWith(delivery).Verify(payload, signature, now)
}

// Verify compares a payload and a signature that a receiver claims to have received with what was sent. The signature
// is a single one ("v1,<base64>") or a whole header value with several; one valid signature is enough.
//
// If several things are wrong, the signature is reported before the payload, and the payload before the secret. Digests
// and payloads are compared in constant time.
func (s *Sent) Verify(payload, signature string, now time.Time) VerificationStatus {
	digests := make([]string, len(s.signatures))
	for i := range s.signatures {
		digests[i] = s.signatures[i].Digest
	}
	given := sha256.Sum256([]byte(payload))
	samePayload := subtle.ConstantTimeCompare(given[:], s.payload[:]) == 1
	matched, valid := false, false
	for i, matches := range signatures.Match(signatures.Tokens(signature), digests) {
		matched = matched || matches
		valid = valid || (matches && !expired(s.signatures[i], now))
	}
	switch {
	case !matched:
		return SignatureMismatch
	case !samePayload:
		return PayloadMismatch
	case !valid:
		return SecretExpired
	}
	return Verified
}

// sentSignatures returns the signatures of all attempts, including failed ones, because each may have arrived.
func sentSignatures(delivery *v1alpha1.WebhookDelivery) []v1alpha1.WebhookSignature {
	var out []v1alpha1.WebhookSignature
	for i := range delivery.Status.Attempts {
		out = append(out, delivery.Status.Attempts[i].Signatures...)
	}
	return out
}

func expired(s v1alpha1.WebhookSignature, now time.Time) bool {
	return s.ExpiresAt != nil && !now.Before(s.ExpiresAt.Time)
}
