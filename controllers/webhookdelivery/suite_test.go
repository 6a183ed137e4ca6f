package webhookdelivery

import (
	"context"
	"net/http"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/webhookendpoint"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

var env *testenv.Environment

func TestMain(m *testing.M) { controllertest.Main(m, &env) }

// loopback allows sending to the tests' receivers.
var loopback = Settings{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// shared are the controllers of endpoints and deliveries. Tests that measure what waits for what run them alone.
var shared = controllertest.Share(loopback.SetupWithManager, webhookendpoint.Settings{}.SetupWithManager)

// namespace creates a namespace whose contents are deleted at the end of the test: all tests share
// a control plane, and a later test's controller would send the leftovers.
func namespace(t *testing.T) string {
	t.Helper()
	ns := env.Namespace(t)
	t.Cleanup(func() {
		for _, kind := range []client.Object{&v1alpha1.WebhookDelivery{}, &v1alpha1.WebhookEndpoint{}} {
			harness.NoError(t, "clean up", env.Client.DeleteAllOf(context.Background(), kind, client.InNamespace(ns)))
		}
	})
	return ns
}

// endpointWithoutPing creates an endpoint that gets no ping, for tests that count requests.
func endpointWithoutPing(t *testing.T, namespace, name, url string) *v1alpha1.WebhookEndpoint {
	t.Helper()
	endpoint := testenv.Create(t, env, builder.WebhookEndpoint(name).In(namespace).URL(url).
		Mutate(func(e *v1alpha1.WebhookEndpoint) { e.Spec.Disabled = true }).Build())
	testenv.ChangeStatus(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Status.PingedAt = new(v1alpha1.Now()) })
	testenv.Change(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Spec.Disabled = false })
	return endpoint
}

func delivery(namespace, name, endpoint string) *v1alpha1.WebhookDelivery {
	return builder.WebhookDelivery(name, time.Now()).In(namespace).Endpoint(endpoint).
		Payload(`{"type":"finding.created","data":{"name":"` + name + `"}}`).Build()
}

// deliveryInFlight returns the delivery d-1 to the endpoint team, which has received it and answers once release
// is closed.
func deliveryInFlight(t *testing.T, ns string) (r *receiver, d *v1alpha1.WebhookDelivery, release chan struct{}) {
	t.Helper()
	arrived, release := make(chan struct{}, 3), make(chan struct{})
	r = newReceiver(t, func(_ http.ResponseWriter, request *http.Request) {
		arrived <- struct{}{}
		hold(request, release)
	})
	endpointWithoutPing(t, ns, "team", r.URL)
	d = testenv.Create(t, env, delivery(ns, "d-1", "team"))
	<-arrived
	return r, d, release
}

// waitFor waits until the delivery is in that phase with that many attempts.
func waitFor(t *testing.T, d *v1alpha1.WebhookDelivery, phase v1alpha1.WebhookDeliveryPhase, attempts int) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		status := testenv.Get(t, g, env, d).Status
		g.Expect(status.Phase).To(Equal(phase), "%+v", status)
		g.Expect(status.Attempts).To(HaveLen(attempts))
		for _, attempt := range status.Attempts {
			g.Expect(attempt.Outcome).NotTo(Equal(v1alpha1.WebhookAttemptStarted))
		}
	})
}

// recordSuccess records an earlier success of the endpoint, recordFailure an earlier failure.
func recordSuccess(t *testing.T, endpoint *v1alpha1.WebhookEndpoint) {
	t.Helper()
	testenv.ChangeStatus(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Status.LastSuccessAt = new(v1alpha1.Now()) })
}

func recordFailure(t *testing.T, endpoint *v1alpha1.WebhookEndpoint) {
	t.Helper()
	testenv.ChangeStatus(t, env, endpoint, func(e *v1alpha1.WebhookEndpoint) { e.Status.ConsecutiveFailures = 1 })
}
