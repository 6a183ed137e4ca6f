package webhookendpoint

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// start runs the controller as the service account that it has in a cluster.
func start(t *testing.T) (stop func()) {
	t.Helper()
	return startWith(t, Settings{SecretPoll: time.Second})
}

func startWith(t *testing.T, settings Settings) (stop func()) {
	t.Helper()
	return controllertest.Start(t, env, settings.SetupWithManager)
}

// newEndpoint creates the endpoint "team" and waits until it is reconciled.
func newEndpoint(t *testing.T, namespace string) *v1alpha1.WebhookEndpoint {
	t.Helper()
	endpoint := testenv.Create(t, env, builder.WebhookEndpoint("team").In(namespace).Build())
	testenv.AwaitReason(t, env, endpoint, v1alpha1.ReasonReconciled)
	return endpoint
}

func secretNamed(namespace, name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: data}
}

// deliveries returns all deliveries in the namespace.
func deliveries(t *testing.T, g Gomega, namespace string) []v1alpha1.WebhookDelivery {
	t.Helper()
	return testenv.List(t, g, env, &v1alpha1.WebhookDeliveryList{}, client.InNamespace(namespace)).Items
}
