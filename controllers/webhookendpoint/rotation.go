package webhookendpoint

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ownsecret"
	"github.com/appsec-dev/findings-operator/internal/signatures"
)

// serialOf returns the serial of the last completed rotation, from the status or the Secret: a Secret that a user
// rewrote without the annotation is not rotated again.
func serialOf(s *scope, secret *corev1.Secret) int64 {
	// A serial above the wanted one cannot have been carried out.
	return max(s.Before.RotationSerial, min(ownsecret.Serial(secret), s.Object.Spec.Rotation.WantedSerial()))
}

// isNotRotated reports whether the spec asks for an earlier rotation than the last one.
func isNotRotated(endpoint *v1alpha1.WebhookEndpoint) bool {
	return endpoint.Spec.Rotation != nil && endpoint.Spec.Rotation.Serial < endpoint.Status.RotationSerial
}

// rotated returns the data of the Secret after a rotation at this time. An invalid previous secret
// is not kept.
func rotated(data map[string][]byte, rotation *v1alpha1.WebhookSecretRotation, now time.Time) map[string][]byte {
	_, text := signatures.NewSecret()
	out := map[string][]byte{v1alpha1.WebhookSecretKey: []byte(text)}
	before := data[v1alpha1.WebhookSecretKey]
	_, err := signatures.ParseSecret(string(before))
	if overlap := rotation.Overlap; err == nil && overlap != nil && overlap.Duration > 0 {
		end := now.UTC().Add(overlap.Duration).Truncate(time.Second)
		out[v1alpha1.WebhookPreviousSecretKey] = before
		out[v1alpha1.WebhookPreviousSecretExpiresAtKey] = []byte(end.Format(time.RFC3339))
	}
	return out
}
