package plugin_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// delivered creates deliveries to endpoints, each in the given phase.
func (o *organization) delivered(phases map[string]v1alpha1.WebhookDeliveryPhase) {
	o.Helper()
	for name, phase := range phases {
		endpoint, _, _ := strings.Cut(name, "-")
		d := builder.WebhookDelivery(name, time.Now()).In(o.namespace).Endpoint(endpoint).Build()
		env.Create(o, d)
		testenv.ChangeStatus(o, env, d, func(d *v1alpha1.WebhookDelivery) { d.Status.Phase = phase })
	}
}

// asked returns the values of the annotation by delivery, for deliveries that have one.
func (o *organization) asked() map[string]string {
	o.Helper()
	list := testenv.List(o, NewWithT(o), env, &v1alpha1.WebhookDeliveryList{}, client.InNamespace(o.namespace))
	asked := map[string]string{}
	for _, d := range list.Items {
		if value := d.Annotations[v1alpha1.RedeliverAnnotation]; value != "" {
			asked[d.Name] = value
		}
	}
	return asked
}

var inAllPhases = map[string]v1alpha1.WebhookDeliveryPhase{
	"one-1": v1alpha1.WebhookDeliveryFailed, "one-2": v1alpha1.WebhookDeliveryFailed, "one-3": v1alpha1.WebhookDeliveryDelivered,
	"one-4": v1alpha1.WebhookDeliveryPending, "other-1": v1alpha1.WebhookDeliveryFailed,
}

func TestWhatFailedIsRedelivered(t *testing.T) {
	o := newOrganization(t, "redeliver")
	o.delivered(inAllPhases)
	g := &gateway{}
	triager := g.through(o, o.token(testenv.Triager))

	triager.findings("redeliver", "--endpoint", "one", "--failed").Fails("refusing to redeliver 2 deliveries in namespace "+o.namespace, "--yes")
	triager.findings("redeliver", "--endpoint", "one", "--failed", "--dry-run").Wants("one-1", "one-2", "dry run", "2 requested")
	if asked := o.asked(); len(asked) != 0 {
		t.Fatalf("asked for %v without leave", asked)
	}
	triager.findings("redeliver", "--endpoint", "one", "--failed", "--yes").Wants("redeliveries: 2 requested, 0 unchanged, 0 failed")
	first := o.asked()
	harness.Same(t, "asked for", []string{"one-1", "one-2"}, slices.Sorted(maps.Keys(first)))
	lists := g.sent(http.MethodGet, "/webhookdeliveries")
	harness.Same(t, "deliveries in the lists, 2 in each", 2*len(lists), listed(lists))
	harness.Same(t, "reads of a listed delivery", 0, len(g.sent(http.MethodGet, "/webhookdeliveries/one-1")))

	triager.findings("redeliver", "one-1", "one-3").Wants("2 requested")
	if again := o.asked(); again["one-1"] == first["one-1"] || again["one-3"] == "" {
		t.Errorf("asked for %v after %v: each time takes another value", again, first)
	}
	endpoint := testenv.Create(t, env, builder.WebhookEndpoint("new").In(o.namespace).Build())
	for name, uid := range map[string]types.UID{"gone-1": "former", "new-1": "former", "new-2": endpoint.UID} {
		of, _, _ := strings.Cut(name, "-")
		d := builder.WebhookDelivery(name, time.Now()).In(o.namespace).Endpoint(of).Build()
		d.Spec.EndpointRef.UID = string(uid)
		testenv.Create(t, env, d)
	}
	for _, flag := range []string{"--dry-run", "--quiet"} {
		triager.findings("redeliver", "gone-1", "new-1", flag).Fails("0 unchanged, 2 failed",
			`failed gone-1: it is not sent again: its WebhookEndpoint "gone" was deleted`, "failed new-1: it is not sent again")
	}
	triager.findings("redeliver", "--endpoint", "new", "--yes").Fails("1 requested, 0 unchanged, 1 failed")
	if asked := o.asked(); asked["gone-1"] != "" || asked["new-1"] != "" || asked["new-2"] == "" {
		t.Errorf("asked for %v: what is not sent again is not asked for", asked)
	}
	harness.Same(t, "reads of an endpoint by three commands", 3, len(g.sent(http.MethodGet, "/webhookendpoints/new")))
	triager.findings("redeliver", "one-5").Fails("Did you mean")
	triager.findings("redeliver", "--failed", "--field-selector", "spec.class=CWE-89").Fails("not supported", "Deliveries are selected by")
	triager.findings("redeliver", "--endpoint", "neo", "--failed").Fails(`webhookendpoints.appsec.dev "neo" not found`)
	triager.findings("redeliver", "--field-selector", "spec.event.type=finding.creatd", "--dry-run").
		Wants(`spec.event.type is "finding.creatd", which this version does not know: did you mean finding.created?`, "0 requested")
	o.member(testenv.Viewer).findings("redeliver", "one-1").Fails("forbidden", "redeliver webhooks", "findings-triager")
}

func TestARedeliveryIsWaitedFor(t *testing.T) {
	o := newOrganization(t, "redeliver-wait")
	o.delivered(inAllPhases)
	done := make(chan *harness.Outcome)
	triager := o.member(testenv.Triager)
	go func() { done <- triager.findings("redeliver", "--failed", "--wait", "--yes", "--timeout", "5m") }()
	harness.Eventually(t, func(g Gomega) { g.Expect(o.asked()).To(HaveLen(3)) })
	for name, phase := range map[string]v1alpha1.WebhookDeliveryPhase{
		"one-1": v1alpha1.WebhookDeliveryDelivered, "one-2": v1alpha1.WebhookDeliveryFailed, "other-1": v1alpha1.WebhookDeliveryDelivered,
	} {
		o.ends(name, phase)
	}
	(<-done).Fails("redeliveries: 2 delivered, 0 unchanged, 1 failed",
		"failed one-2: it failed again: the receiver answered with a status other than 200 to 299 (status 503)")

	triager.findings("redeliver", "one-4", "--wait", "--timeout", "300ms").Fails("not delivered yet")
}

// ends starts and completes the redelivery, as the controllers would.
func (o *organization) ends(name string, phase v1alpha1.WebhookDeliveryPhase) {
	o.Helper()
	delivery := builder.WebhookDelivery(name, time.Now()).In(o.namespace).Build()
	testenv.ChangeStatus(o, env, delivery, func(d *v1alpha1.WebhookDelivery) {
		d.Status.Redelivery = &v1alpha1.WebhookRedelivery{
			Value: d.Annotations[v1alpha1.RedeliverAnnotation], At: v1alpha1.NewTime(time.Now()), Attempts: 1,
		}
		d.Status.Phase = v1alpha1.WebhookDeliveryPending
	})
	attempt := v1alpha1.WebhookAttempt{
		At: v1alpha1.NewTime(time.Now()), Outcome: v1alpha1.WebhookAttemptSucceeded, Code: http.StatusNoContent,
	}
	if phase == v1alpha1.WebhookDeliveryFailed {
		attempt.Outcome, attempt.Code = v1alpha1.WebhookAttemptFailed, http.StatusServiceUnavailable
		attempt.Message = "the receiver answered with a status other than 200 to 299"
	}
	testenv.ChangeStatus(o, env, delivery, func(d *v1alpha1.WebhookDelivery) {
		d.Status.Phase = phase
		d.Status.Attempts = []v1alpha1.WebhookAttempt{attempt}
	})
}
