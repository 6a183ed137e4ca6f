package organization

import (
	"testing"
	"time"

	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/controllertest"
	"github.com/appsec-dev/findings-operator/test/builder"
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
	return controllertest.Start(t, config, env.Scheme, SetupWithManager)
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

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := env.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// newOrganization makes an organization whose finalizer does not outlive the test: there may
// be no controller left that takes it off.
func newOrganization(t *testing.T, name string) *v1alpha1.Organization {
	t.Helper()
	organization := builder.Organization(name).Build()
	create(t, organization)
	return organization
}

func newNamespace(t *testing.T, name string, annotations map[string]string) *corev1.Namespace {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	create(t, namespace)
	return namespace
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

func reason(organization *v1alpha1.Organization, conditionType string) string {
	if c := v1alpha1.FindCondition(organization.Status.Conditions, conditionType); c != nil {
		return c.Reason + "/" + string(c.Status)
	}
	return "absent"
}

func waitUntilReady(t *testing.T, organization *v1alpha1.Organization) {
	t.Helper()
	eventually(t, func(g Gomega) {
		get(t, g, organization)
		g.Expect(reason(organization, v1alpha1.ConditionReady)).To(Equal("Reconciled/True"))
	})
}
