package scan

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// owedNothing waits until all of that many transitions are recorded and emitted.
func owedNothing(t *testing.T, scan *v1alpha1.Scan, transitions int) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		status := testenv.Get(t, g, env, scan).Status
		g.Expect(status.Transitions).To(HaveLen(transitions))
		g.Expect(status.EmittedSeq).To(BeEquivalentTo(transitions))
	})
}

func TestTheEndOfAScanIsSentOnce(t *testing.T) {
	stop := controllertest.Start(t, env, Settings{}.SetupWithManager)
	ns := env.Namespace(t)
	endpoint := builder.WebhookEndpoint("scans").In(ns).Events("scan.completed").Build()
	env.Create(t, endpoint, builder.WebhookEndpoint("findings").In(ns).Events("finding.*").Build())
	scan := testenv.Create(t, env, builder.Scan("s-1", time.Now()).In(ns).Build())
	phase(t, scan, v1alpha1.ScanPhaseRunning, v1alpha1.ReasonScanRunning)
	g := NewWithT(t)
	g.Expect(scan.Status.Transitions).To(BeEmpty())

	env.Patch(t, scan, `{"spec":{"completedAt":"2026-03-01T12:00:00Z","outcome":"Succeeded","counts":{"created":3}}}`)
	owedNothing(t, scan, 1)
	name := webhooks.DeliveryName(scan.UID, 1, endpoint.UID)
	g.Expect(controllertest.Deliveries(t, env, g, ns)).To(Equal(map[string]string{name: "scan.completed"}), "one endpoint asks for it")
	delivery := testenv.Get(t, g, env, builder.WebhookDelivery(name, time.Now()).In(ns).Build())
	g.Expect(delivery.Spec.Event.Subject).To(Equal(v1alpha1.WebhookEventSubject{Kind: "Scan", Name: "s-1"}))
	g.Expect(delivery.Spec.Payload).To(ContainSubstring(`"outcome":{"to":"Succeeded"},"abandoned":false,"counts":{"created":3,`))

	// After the delivery is retired and the controller restarted, it is not made again.
	stop()
	g.Expect(env.Client.Delete(t.Context(), delivery)).To(Succeed())
	controllertest.Start(t, env, Settings{}.SetupWithManager)
	next := testenv.Create(t, env, builder.Scan("s-2", time.Now()).In(ns).Ended(time.Now(), v1alpha1.ScanFailed).Build())
	owedNothing(t, next, 1)
	g.Expect(controllertest.Deliveries(t, env, g, ns)).To(Equal(map[string]string{webhooks.DeliveryName(next.UID, 1, endpoint.UID): "scan.completed"}))
}

func TestAScanThatIsGivenUpAndItsLateEndAreSent(t *testing.T) {
	ns := shared.Namespace(t, env)
	endpoint := testenv.Create(t, env, builder.WebhookEndpoint("all").In(ns).Build())
	// It was overdue long before it was recorded.
	scan := testenv.Create(t, env, builder.Scan("s-1", time.Now().Add(-2*v1alpha1.ScanAbandonedAfter)).In(ns).Build())
	phase(t, scan, v1alpha1.ScanPhaseFailed, v1alpha1.ReasonAbandoned)
	owedNothing(t, scan, 1)
	g := NewWithT(t)
	env.Patch(t, scan, `{"spec":{"completedAt":"2026-03-01T12:00:00Z","outcome":"Failed","counts":{"created":3}}}`)
	owedNothing(t, scan, 2)
	want := map[string]string{
		webhooks.DeliveryName(scan.UID, 1, endpoint.UID): "scan.completed",
		webhooks.DeliveryName(scan.UID, 2, endpoint.UID): "scan.completed",
	}
	g.Expect(controllertest.Deliveries(t, env, g, ns)).To(Equal(want))
}

// Without a subscriber, the end of a scan causes one write, and no delivery is owed.
func TestAnEndThatNobodyAsksForIsOneWrite(t *testing.T) {
	ns := shared.Namespace(t, env)
	env.Create(t, builder.WebhookEndpoint("findings").In(ns).Events("finding.*").Build())
	g := NewWithT(t)
	writes := testenv.Writes[*v1alpha1.Scan](t, env, &v1alpha1.ScanList{}, ns)

	const n = 5
	ended := func(i int) *v1alpha1.Scan {
		return testenv.Create(t, env, builder.Scan(fmt.Sprintf("s-%d", i), time.Now()).In(ns).Ended(time.Now(), v1alpha1.ScanSucceeded).Build())
	}
	var scans []*v1alpha1.Scan
	for i := range n {
		scans = append(scans, ended(i))
	}
	for _, scan := range scans {
		owedNothing(t, scan, 1)
	}
	marker := ended(n) // once it is written, what was queued before it has been reconciled
	last := func(written *v1alpha1.Scan) bool { return written.Name == marker.Name }
	g.Expect(testenv.CountWrites(writes, last)).To(Equal(n))
	g.Expect(controllertest.Deliveries(t, env, g, ns)).To(BeEmpty())
}
