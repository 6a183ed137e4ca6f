package webhookendpoint

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/signatures"
)

// serialAnnotation says in a Secret which rotation made what it holds, for a reconcile after a
// crash before the status was written.
const serialAnnotation = v1alpha1.GroupName + "/rotation-serial"

func wantedSerial(endpoint *v1alpha1.WebhookEndpoint) int64 {
	if endpoint.Spec.Rotation == nil {
		return 0
	}
	return endpoint.Spec.Rotation.Serial
}

// serialOf is the last rotation that was carried out, by the status or by the Secret: a Secret
// that someone has written anew without the annotation is not rotated again for it.
func serialOf(s *scope, secret *corev1.Secret) int64 {
	marked, err := strconv.ParseInt(secret.Annotations[serialAnnotation], 10, 64)
	if err != nil {
		marked = 0
	}
	// More than was asked for nobody can have carried out.
	return max(s.before.RotationSerial, min(marked, wantedSerial(s.endpoint)))
}

func mark(secret *corev1.Secret, serial int64) {
	if serial > 0 {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, serialAnnotation, strconv.FormatInt(serial, 10))
	}
}

// rotate puts a fresh signing secret into the Secret, over exactly what was read, and keeps the
// one before beside it for the overlap.
func (r *Reconciler) rotate(ctx context.Context, s *scope, f found, secret *corev1.Secret) (found, error) {
	s.secretRotated = true
	data := rotated(secret.Data, s.endpoint.Spec.Rotation, s.now)
	if ptr.Deref(secret.Immutable, false) {
		// Someone froze it.
		if err := r.deleteSecret(ctx, secret); err != nil {
			return f, err
		}
		return r.createSecret(ctx, s, f, data)
	}
	f.serial = wantedSerial(s.endpoint)
	secret.Data = data
	mark(secret, f.serial)
	metav1.SetMetaDataLabel(&secret.ObjectMeta, v1alpha1.ManagedByLabel, v1alpha1.ManagedBy)
	if err := r.client.Update(ctx, secret); err != nil {
		return f, fmt.Errorf("update secret %s: %w", secret.Name, err)
	}
	f.secrets, f.problem = signatures.ParseSecrets(data)
	return f, nil
}

// rotated is the data of the Secret after a rotation now. What cannot sign is not kept.
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
