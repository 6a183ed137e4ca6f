package retention

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// patience is how long a condition may take on a busy machine.
const patience = 60 * time.Second

// quick are settings under which a test need not wait.
var quick = Settings{Rate: 1000, Interval: 100 * time.Millisecond}

// start runs the controller, and others, as the service account that they have in a cluster.
func start(t *testing.T, settings Settings, others ...controllertest.Setup) (stop func()) {
	t.Helper()
	config, err := env.Controller(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return controllertest.Start(t, config, env.Scheme, append(others,
		func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
			return SetupWithManager(ctx, mgr, options, settings)
		})...)
}

// organization makes one with its namespace, and returns the namespace's name.
func organization(t *testing.T, name string) string {
	t.Helper()
	ns, err := env.NewOrganization(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// keeps gives the organization figures.
func keeps(t *testing.T, name string, figures v1alpha1.Retention) {
	t.Helper()
	o := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: name}}
	eventually(t, func(g Gomega) {
		g.Expect(env.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o)).To(Succeed())
		o.Spec.Retention = &figures
		g.Expect(env.Client.Update(t.Context(), o)).To(Succeed())
	})
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := env.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// told sets the status, as the object's own controller would have it once all is told.
func told(t *testing.T, objects ...client.Object) {
	t.Helper()
	config, err := env.Controller(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := env.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *v1alpha1.Finding:
			o.Status.ObservedGeneration = o.Generation
		case *v1alpha1.Scan:
			o.Status.ObservedGeneration = o.Generation
		}
		if err := c.Status().Update(t.Context(), object); err != nil {
			t.Fatalf("set the status of %T %s: %v", object, object.GetName(), err)
		}
	}
}

// eventually polls until the assertions hold.
func eventually(t *testing.T, assertions func(g Gomega)) {
	t.Helper()
	NewWithT(t).Eventually(assertions).WithContext(t.Context()).
		WithTimeout(patience).WithPolling(50 * time.Millisecond).Should(Succeed())
}

func exists(t *testing.T, g Gomega, object client.Object) bool {
	t.Helper()
	err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
	g.Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
	return !apierrors.IsNotFound(err)
}
