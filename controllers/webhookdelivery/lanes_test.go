package webhookdelivery

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega" //nolint:revive,staticcheck // gomega reads as it is meant to this way
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// tells makes the delivery one of an event of that type, caused by that writer.
func tells(d *v1alpha1.WebhookDelivery, event, by string) *v1alpha1.WebhookDelivery {
	d.Spec.Event.Type = event
	d.Spec.Payload = fmt.Sprintf(`{"type":%q,"data":{"name":%q,"by":%q}}`, event, d.Name, by)
	return d
}

// The receiver is slow, so the deliveries of an import wait; the decision's is created last.
func TestADecisionIsSentBeforeTheBacklogOfAnImport(t *testing.T) {
	const backlog = 20
	start(t, loopback)
	ns, release := namespace(t), make(chan struct{})
	r := newReceiver(t, func(_ http.ResponseWriter, request *http.Request) { hold(request, release) })
	quiet(t, ns, "team", r.URL)
	for i := range backlog {
		env.Create(t, delivery(ns, fmt.Sprintf("d-%d", i), "team"))
	}
	harness.Eventually(t, func(g Gomega) { g.Expect(r.got()).NotTo(BeEmpty()) })
	decided := tells(delivery(ns, "decided", "team"), "finding.triaged", "apikey/ci")
	env.Create(t, decided)
	waitFor(t, decided, v1alpha1.WebhookDeliveryPending, 0)
	underWay := len(r.got())
	close(release)
	waitFor(t, decided, v1alpha1.WebhookDeliveryDelivered, 1)

	place := slices.IndexFunc(r.got(), func(m message) bool { return strings.Contains(m.body, `"finding.triaged"`) })
	if place > underWay {
		t.Errorf("the decision was sent as number %d, and %d were under way", place+1, underWay)
	}
}

func TestOnlyAPersonsPendingDecisionIsUrgent(t *testing.T) {
	for _, c := range []struct {
		event, by string
		phase     v1alpha1.WebhookDeliveryPhase
		want      bool
	}{
		{"finding.triaged", "ann", "", true},
		{"finding.triaged", "apikey/ci", v1alpha1.WebhookDeliveryPending, true},
		{"review_issue.triaged", "ann", "", true},
		{"finding.triaged", "ann", v1alpha1.WebhookDeliveryDelivered, false},
		{"finding.triaged", "ann", v1alpha1.WebhookDeliveryFailed, false},
		{"finding.triaged", "operation/mute", "", false},
		{"finding.judged", "policy/mute", "", false},
		{"finding.created", "scanner/gosec", "", false},
		{"webhook.ping", "", "", false},
	} {
		d := tells(builder.WebhookDelivery("d", time.Now()).Build(), c.event, c.by)
		d.Status.Phase = c.phase
		if got := isUrgent(d); got != c.want {
			t.Errorf("%s by %s, %q: urgent is %t", c.event, c.by, c.phase, got)
		}
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
	b.ask("a", 0, standingProven)
	b.next(1)
	b.ask("a", 1, standingProven)
	urgent := types.NamespacedName{Name: "a/urgent"}
	b.finished.Add(1)
	b.submit(urgent, types.NamespacedName{Name: "a"}, standingProven, true)
	b.release(types.NamespacedName{Name: "a/0"}, standingProven)
	if began := <-b.began; began != urgent {
		t.Errorf("%s began before the urgent work", began.Name)
	}
	b.release(urgent, standingProven)
	if began := <-b.began; began.Name != "a/1" {
		t.Errorf("after the urgent work, %s began", began.Name)
	}
}
