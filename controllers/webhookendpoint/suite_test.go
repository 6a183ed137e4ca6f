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

var (
	// settings have a MaxPending that is small for TestTooManyDeliveriesThatWait.
	settings = Settings{SecretPoll: time.Second, MaxPending: 6}
	shared   = controllertest.Share(settings.SetupWithManager)
)

func TestMain(m *testing.M) { controllertest.Main(m, &env) }

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
