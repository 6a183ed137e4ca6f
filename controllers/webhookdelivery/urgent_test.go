package webhookdelivery

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// tells makes the delivery one of an event of that type, caused by that writer.
func tells(d *v1alpha1.WebhookDelivery, event, by string) *v1alpha1.WebhookDelivery {
	d.Spec.Event.Type = event
	d.Spec.Payload = fmt.Sprintf(`{"type":%q,"data":{"name":%q,"by":%q}}`, event, d.Name, by)
	return d
}

// The receiver is slow, so the deliveries of an import wait; the decision's is created after them.
func TestADecisionIsSentBeforeTheBacklogOfAnImport(t *testing.T) {
	const backlog = 20
	shared.Alone(t, env)
	ns, release := namespace(t), make(chan struct{})
	r := newReceiver(t, func(_ http.ResponseWriter, request *http.Request) { hold(request, release) })
	endpointWithoutPing(t, ns, "team", r.URL)
	endpointWithoutPing(t, ns, "quick", newReceiver(t, answers(http.StatusOK)).URL)
	for i := range backlog {
		env.Create(t, delivery(ns, fmt.Sprintf("d-%d", i), "team"))
	}
	harness.Eventually(t, func(g Gomega) { g.Expect(r.got()).NotTo(BeEmpty()) })
	decided := testenv.Create(t, env, tells(delivery(ns, "decided", "team"), "finding.triaged", "apikey/ci"))
	last := testenv.Create(t, env, delivery(ns, "last", "quick"))
	waitFor(t, last, v1alpha1.WebhookDeliveryDelivered, 1) // so those before it have been reconciled
	underWay := len(r.got())
	close(release)
	waitFor(t, decided, v1alpha1.WebhookDeliveryDelivered, 1)

	place := slices.IndexFunc(r.got(), func(m message) bool { return strings.Contains(m.body, `"finding.triaged"`) })
	// Once the endpoint has answered, several are sent at a time, the decision among the first.
	if place >= underWay+endpointLimit {
		t.Errorf("the decision was sent as number %d, and %d were under way", place+1, underWay)
	}
}

// An import leaves thousands of deliveries waiting, and each write of one costs as much as sending it.
func TestADeliveryThatWaitsForItsTurnIsPendingWithoutAWrite(t *testing.T) {
	shared.Alone(t, env)
	ns, release := namespace(t), make(chan struct{})
	defer close(release)
	slow := newReceiver(t, func(_ http.ResponseWriter, request *http.Request) { hold(request, release) })
	quick := newReceiver(t, answers(http.StatusOK))
	recordSuccess(t, endpointWithoutPing(t, ns, "slow", slow.URL))
	endpointWithoutPing(t, ns, "quick", quick.URL)
	for i := range endpointLimit {
		env.Create(t, delivery(ns, fmt.Sprintf("first-%d", i), "slow"))
	}
	harness.Eventually(t, func(g Gomega) { g.Expect(slow.got()).To(HaveLen(endpointLimit)) })
	waiting := []*v1alpha1.WebhookDelivery{delivery(ns, "d-1", "slow"), delivery(ns, "d-2", "slow"), delivery(ns, "d-3", "slow")}
	for _, d := range waiting {
		env.Create(t, d)
	}
	last := testenv.Create(t, env, delivery(ns, "last", "quick"))
	waitFor(t, last, v1alpha1.WebhookDeliveryDelivered, 1) // so those before it have been reconciled

	g := NewWithT(t)
	for _, d := range waiting {
		now := testenv.Get(t, g, env, d.DeepCopy())
		g.Expect(now.Status.Phase).To(Equal(v1alpha1.WebhookDeliveryPending))
		g.Expect(now.ResourceVersion).To(Equal(d.ResourceVersion))
	}

	// A redelivery is confirmed nevertheless: somebody waits for that.
	again := waiting[1]
	testenv.Change(t, env, again, func(d *v1alpha1.WebhookDelivery) {
		d.Annotations = map[string]string{v1alpha1.RedeliverAnnotation: "now"}
	})
	harness.Eventually(t, func(g Gomega) { g.Expect(testenv.Get(t, g, env, again).Status.Redelivery).NotTo(BeNil()) })
	g.Expect(again.Status.Attempts).To(BeEmpty(), "it is confirmed before its turn")
}

func TestOnlyTheFirstAttemptForADecisionIsUrgent(t *testing.T) {
	for _, c := range []struct {
		event, by string
		attempts  int
		want      bool
	}{
		{"finding.triaged", "ann", 0, true},
		{"finding.triaged", "apikey/ci", 0, true},
		{"review_issue.triaged", "ann", 0, true},
		{"finding.triaged", "ann", 1, false},
		{"finding.triaged", "operation/mute", 0, false},
		{"finding.judged", "policy/mute", 0, false},
		{"finding.created", "scanner/gosec", 0, false},
		{"webhook.ping", "", 0, false},
	} {
		d := tells(builder.WebhookDelivery("d", time.Now()).Build(), c.event, c.by)
		d.Status.Attempts = make([]v1alpha1.WebhookAttempt, c.attempts)
		harness.Same(t, fmt.Sprintf("%s by %s, attempt %d: urgent", c.event, c.by, c.attempts+1), c.want, isUrgent(d))
	}
	strange := tells(builder.WebhookDelivery("d", time.Now()).Build(), "finding.triaged", "ann")
	strange.Spec.Payload = "no JSON"
	if isUrgent(strange) {
		t.Error("a payload that is no JSON is urgent")
	}
}

func TestUrgentWorkBeginsFirst(t *testing.T) {
	b := newBench(t, limits{overall: 1, failing: 1, slow: 1, perEndpoint: 1, slowAfter: time.Hour})
	b.run(t)
	b.ask("a", 0, healthProven)
	b.next(1)
	b.ask("a", 1, healthProven)
	urgent := types.NamespacedName{Name: "a/urgent"}
	b.finished.Add(1)
	b.submit(urgent, named("a"), healthProven, true)
	b.release(types.NamespacedName{Name: "a/0"}, healthProven)
	harness.Same(t, "what begins first", urgent, b.nextJob())
	b.release(urgent, healthProven)
	harness.Same(t, "what began after the urgent work", "a/1", b.nextJob().Name)
}

func TestUrgentWorkDoesNotWaitForASlowReceiver(t *testing.T) {
	b := newBench(t, roomy)
	b.run(t)
	for n := range roomy.perEndpoint + 1 {
		b.ask("a", n, healthProven)
	}
	b.next(roomy.perEndpoint)
	endpoint, urgent := named("a"), types.NamespacedName{Name: "a/urgent"}
	if b.hasRoom(endpoint, healthProven, false) || !b.hasRoom(endpoint, healthProven, true) {
		t.Error("there is no room for urgent work, or some for more than that")
	}
	for _, delivery := range []types.NamespacedName{urgent, {Name: "a/urgent too"}} {
		b.finished.Add(1)
		b.submit(delivery, endpoint, healthProven, true)
	}
	harness.Same(t, "what begins", urgent, b.nextJob())
	b.wantsRunning(roomy.perEndpoint+1, "with more work of both kinds")
}

// Other work is not put off for ever.
func TestOtherWorkBeginsAmongUrgentWork(t *testing.T) {
	q := &queue{waiting: []types.NamespacedName{{Name: "other"}}}
	for range 2 * urgentRun {
		q.urgent = append(q.urgent, types.NamespacedName{Name: "urgent"})
	}
	for n := range urgentRun {
		harness.Same(t, fmt.Sprintf("what is taken as number %d", n+1), "urgent", q.take().Name)
	}
	harness.Same(t, "what is taken after so much urgent work", "other", q.take().Name)
	harness.Same(t, "what is taken after other work", "urgent", q.take().Name)
}
