package reviewissue

import (
	"testing"
	"time"

	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/controllers/internal/controllertest"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// patience is how long a condition may take on a busy machine.
const patience = 30 * time.Second

// start runs the controllers as the service account that they have in a cluster.
func start(t *testing.T, setups ...controllertest.Setup) (stop func()) {
	t.Helper()
	return controllertest.Start(t, controllerConfig(t), env.Scheme, setups...)
}

func controllerConfig(t *testing.T) *rest.Config {
	t.Helper()
	config, err := env.ServiceAccount(t.Context(), testenv.SystemNamespace, "findings-controller")
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// namespace makes one for the test.
func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "reviewissue-"}}
	if err := env.Client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// create makes the objects as the administrator.
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
