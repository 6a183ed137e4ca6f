package webhookendpoint

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ownsecret"
	"github.com/appsec-dev/findings-operator/internal/signatures"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func rotate(serial int64, overlap time.Duration) func(*v1alpha1.WebhookEndpoint) {
	return func(e *v1alpha1.WebhookEndpoint) {
		e.Spec.Rotation = &v1alpha1.WebhookSecretRotation{Serial: serial}
		if overlap != 0 {
			e.Spec.Rotation.Overlap = &metav1.Duration{Duration: overlap}
		}
	}
}

// rotatedTo waits until the rotation with that serial has been carried out, and returns the Secret.
func rotatedTo(t *testing.T, endpoint *v1alpha1.WebhookEndpoint, serial int64) *corev1.Secret {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		status := testenv.Get(t, g, env, endpoint).Status
		g.Expect(status.RotationSerial).To(Equal(serial))
		g.Expect(status.ObservedGeneration).To(Equal(endpoint.Generation))
	})
	return testenv.Get(t, NewWithT(t), env, secretNamed(endpoint.Namespace, SecretName(endpoint.Name), nil))
}

func TestARotationKeepsTheSecretBeforeForTheOverlap(t *testing.T) {
	stop := shared.Alone(t, env)
	ns, g := env.Namespace(t), NewWithT(t)
	endpoint := newEndpoint(t, ns)
	older := string(testenv.Get(t, g, env, secretNamed(ns, "team-webhook", nil)).Data[v1alpha1.WebhookSecretKey])
	former := endpoint.Status.Secrets[0].ID

	testenv.Change(t, env, endpoint, rotate(1, time.Hour))
	secret := rotatedTo(t, endpoint, 1)
	g.Expect(string(secret.Data[v1alpha1.WebhookPreviousSecretKey])).To(Equal(older))
	secrets, err := signatures.ParseSecrets(secret.Data)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(secrets.All()).To(HaveLen(2))
	g.Expect(secrets.All()[1].ExpiresAt.Time).To(BeTemporally("~", time.Now().Add(time.Hour), time.Minute))
	g.Expect(endpoint.Status.Secrets[0].ID).To(Equal(secrets.All()[0].ID()))
	g.Expect(endpoint.Status.Secrets[1].ID).To(Equal(former))
	g.Expect(endpoint.Status.Secrets[1].ExpiresAt.Time).To(BeTemporally("==", secrets.All()[1].ExpiresAt.Time))

	// Neither another reconcile, nor a restart, nor a rewritten Secret rotates again.
	version := secret.ResourceVersion
	stop()
	shared.Alone(t, env)
	testenv.Change(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Batch = v1alpha1.WebhookBatchPerScan })
	g.Expect(rotatedTo(t, endpoint, 1).ResourceVersion).To(Equal(version))
	testenv.Change(t, env, secret, func(s *corev1.Secret) { s.Annotations = nil })
	testenv.Change(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Batch = v1alpha1.WebhookBatchNone })
	g.Expect(rotatedTo(t, endpoint, 1).Data).To(Equal(secret.Data))

	// The next rotation, without an overlap, ends both.
	testenv.Change(t, env, endpoint, rotate(2, 0))
	secret = rotatedTo(t, endpoint, 2)
	g.Expect(secret.Data).To(HaveLen(1))
	g.Expect(secret.Annotations[ownsecret.SerialAnnotation]).To(Equal("2"))
	for _, ended := range endpoint.Status.Secrets[1:] {
		g.Expect(ended.ExpiresAt.Time).NotTo(BeTemporally(">", time.Now()))
	}
	// A lower serial requests nothing.
	testenv.Change(t, env, endpoint, rotate(1, time.Hour))
	g.Expect(rotatedTo(t, endpoint, 2).Data).To(Equal(secret.Data))
}

// A crash after the Secret was written leaves a rotation that the status does not record.
func TestARotationIsCarriedOutOnceOverACrash(t *testing.T) {
	stop := shared.Alone(t, env)
	ns, g := env.Namespace(t), NewWithT(t)
	endpoint := newEndpoint(t, ns)
	stop()
	testenv.Change(t, env, endpoint, rotate(3, time.Hour))
	secret := secretNamed(ns, "team-webhook", nil)
	testenv.Change(t, env, secret, func(s *corev1.Secret) {
		s.Data = rotated(s.Data, endpoint.Spec.Rotation, time.Now())
		ownsecret.SetSerial(s, 3)
	})
	shared.Alone(t, env)
	g.Expect(rotatedTo(t, endpoint, 3).Data).To(Equal(secret.Data))
}

func TestAFreshSecretNeedsNoRotation(t *testing.T) {
	ns, g := shared.Namespace(t, env), NewWithT(t)
	endpoint := testenv.Create(t, env, builder.WebhookEndpoint("team").In(ns).Mutate(rotate(5, time.Hour)).Build())
	g.Expect(rotatedTo(t, endpoint, 5).Data).To(HaveLen(1))
}

func TestSerialOf(t *testing.T) {
	cases := []struct {
		reason string
		done   int64
		marked string
		wanted int64
		want   int64
	}{
		{"nothing was done", 0, "", 1, 0},
		{"the status says so", 1, "", 1, 1},
		{"a crash before the status", 0, "1", 1, 1},
		{"someone wrote the Secret anew", 1, "", 2, 1},
		{"a mark of what nobody asked for", 1, "99", 2, 2},
		{"a mark that is no number", 1, "x", 2, 1},
		{"less is asked for than was done", 3, "3", 2, 3},
	}
	for _, c := range cases {
		s := newScope()
		s.Before.RotationSerial = c.done
		rotate(c.wanted, 0)(s.Object)
		secret := &corev1.Secret{}
		if c.marked != "" {
			secret.Annotations = map[string]string{ownsecret.SerialAnnotation: c.marked}
		}
		harness.Same(t, c.reason, c.want, serialOf(s, secret))
	}
}
