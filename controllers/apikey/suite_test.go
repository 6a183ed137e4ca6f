package apikey

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/tokens"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

var (
	settings = Settings{Namespace: testenv.SystemNamespace, ConflictRetry: time.Second}
	shared   = controllertest.Share(settings.SetupWithManager)
)

func TestMain(m *testing.M) { controllertest.Main(m, &env) }

// change applies a change to the current key, and retries on conflicts.
func change(t *testing.T, key *v1alpha1.APIKey, apply func(*v1alpha1.APIKeySpec)) {
	t.Helper()
	testenv.Change(t, env, key, func(k *v1alpha1.APIKey) { apply(&k.Spec) })
}

// newKey creates an organization, and the key "ci" in it.
func newKey(t *testing.T, organization string) *v1alpha1.APIKey {
	t.Helper()
	return testenv.Create(t, env, builder.APIKey("ci").In(env.Organization(t, organization)).Build())
}

func tokenSecret(key *v1alpha1.APIKey) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: SecretName(key.Name)}}
}

func signingSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.SystemNamespace, Name: tokens.SigningKeySecret}}
}

func signingConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.SystemNamespace, Name: tokens.SigningKeysConfigMap}}
}

// read returns the token in the key's Secret and its claims, verified with the published keys.
func read(t *testing.T, g Gomega, key *v1alpha1.APIKey) (string, tokens.Claims) {
	t.Helper()
	set, err := tokens.DecodeKeySet(testenv.Get(t, g, env, signingConfigMap()).Data)
	g.Expect(err).NotTo(HaveOccurred())
	token := string(testenv.Get(t, g, env, tokenSecret(key)).Data[v1alpha1.APIKeyTokenKey])
	verified, err := set.VerifySignature(token)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(verified.ExpiredAt(time.Now())).To(BeFalse())
	return token, verified.Claims
}

// waitUntilIssued waits until status and Secret agree, and returns the token.
func waitUntilIssued(t *testing.T, key *v1alpha1.APIKey, other ...func(g Gomega)) (token string, claims tokens.Claims) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		testenv.Get(t, g, env, key)
		token, claims = read(t, g, key)
		g.Expect(key.Status.KeyID).To(Equal(claims.ID))
		for _, assert := range other {
			assert(g)
		}
	})
	return token, claims
}

// rotated returns the assertion that the key has been rotated, and that the previous token is still valid.
func rotated(key *v1alpha1.APIKey, serial int64, before string) func(g Gomega) {
	return func(g Gomega) {
		g.Expect(key.Status.RotationSerial).To(Equal(serial))
		g.Expect(key.Status.Previous).NotTo(BeNil())
		g.Expect(key.Status.Previous.KeyID).To(Equal(before))
	}
}
