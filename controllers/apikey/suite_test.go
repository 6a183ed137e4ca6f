package apikey

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/controllertest"
	"github.com/appsec-dev/findings-operator/internal/tokens"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// patience is how long a condition may take on a busy machine.
const patience = 30 * time.Second

// start runs the controller as the service account that it has in a cluster.
func start(t *testing.T) (stop func()) {
	t.Helper()
	config, err := env.Controller(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return controllertest.Start(t, config, env.Scheme, func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
		return SetupWithManager(ctx, mgr, options, testenv.SystemNamespace)
	})
}

// asController returns a client that may write statuses.
func asController(t *testing.T) client.Client {
	t.Helper()
	config, err := env.Controller(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := env.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newOrganization makes one that is ready, and returns its namespace.
func newOrganization(t *testing.T, name string) string {
	t.Helper()
	namespace, err := env.NewOrganization(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return namespace
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := env.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// eventually polls until the assertions hold.
func eventually(t *testing.T, assertions func(g Gomega)) {
	t.Helper()
	NewWithT(t).Eventually(assertions).WithContext(t.Context()).
		WithTimeout(patience).WithPolling(50 * time.Millisecond).Should(Succeed())
}

// get reads the object anew from the API server.
func get[T client.Object](t *testing.T, g Gomega, object T) T {
	t.Helper()
	g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(Succeed())
	return object
}

func gone(t *testing.T, object client.Object) bool {
	t.Helper()
	return apierrors.IsNotFound(env.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
}

// change applies a change to the key as it is, again if someone else was quicker.
func change(t *testing.T, key *v1alpha1.APIKey, apply func(*v1alpha1.APIKeySpec)) {
	t.Helper()
	eventually(t, func(g Gomega) {
		get(t, g, key)
		apply(&key.Spec)
		g.Expect(env.Client.Update(t.Context(), key)).To(Succeed())
	})
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

// read returns what the token in the key's Secret says, checked against what is published.
func read(t *testing.T, g Gomega, key *v1alpha1.APIKey) (string, tokens.Claims) {
	t.Helper()
	set, err := tokens.DecodeKeySet(get(t, g, signingConfigMap()).Data)
	g.Expect(err).NotTo(HaveOccurred())
	token := string(get(t, g, tokenSecret(key)).Data[v1alpha1.APIKeyTokenKey])
	verified, err := set.Verify(token, time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	return token, verified.Claims
}

// waitUntilIssued waits until status and Secret are of one mind, and returns the token.
func waitUntilIssued(t *testing.T, key *v1alpha1.APIKey, other ...func(g Gomega)) (token string, claims tokens.Claims) {
	t.Helper()
	eventually(t, func(g Gomega) {
		get(t, g, key)
		token, claims = read(t, g, key)
		g.Expect(key.Status.KeyID).To(Equal(claims.ID))
		for _, assert := range other {
			assert(g)
		}
	})
	return token, claims
}

func waitForReason(t *testing.T, key *v1alpha1.APIKey, want string) {
	t.Helper()
	eventually(t, func(g Gomega) {
		get(t, g, key)
		condition := v1alpha1.FindCondition(key.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Reason).To(Equal(want))
	})
}
