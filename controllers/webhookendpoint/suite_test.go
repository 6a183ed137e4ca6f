package webhookendpoint

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/controllertest"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// patience is how long a condition may take on a busy machine; a Secret that is not ours is
// looked at every 15 s.
const patience = 45 * time.Second

// start runs the controller as the service account that it has in a cluster.
func start(t *testing.T) (stop func()) {
	t.Helper()
	return startWith(t, Settings{})
}

func startWith(t *testing.T, settings Settings) (stop func()) {
	t.Helper()
	config, err := env.Controller(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return controllertest.Start(t, config, env.Scheme, func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
		return SetupWithManager(ctx, mgr, options, settings)
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

// namespace makes one for the test.
func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "webhooks-"}}
	if err := env.Client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
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

// change applies a change to the object as it is, again if someone else was quicker.
func change[T client.Object](t *testing.T, object T, apply func(T)) {
	t.Helper()
	eventually(t, func(g Gomega) {
		get(t, g, object)
		apply(object)
		g.Expect(env.Client.Update(t.Context(), object)).To(Succeed())
	})
}

func waitForReason(t *testing.T, endpoint *v1alpha1.WebhookEndpoint, want string) {
	t.Helper()
	eventually(t, func(g Gomega) {
		ready := v1alpha1.FindCondition(get(t, g, endpoint).Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready).NotTo(BeNil())
		g.Expect(ready.Reason).To(Equal(want), ready.Message)
		g.Expect(endpoint.Status.ObservedGeneration).To(Equal(endpoint.Generation))
	})
}

func secretNamed(namespace, name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: data}
}

// deliveries are all that there are in the namespace.
func deliveries(t *testing.T, g Gomega, namespace string) []v1alpha1.WebhookDelivery {
	t.Helper()
	list := &v1alpha1.WebhookDeliveryList{}
	g.Expect(env.Client.List(t.Context(), list, client.InNamespace(namespace))).To(Succeed())
	return list.Items
}
