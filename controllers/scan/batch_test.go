package scan

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// batched creates an endpoint that gets a scan's changes in pages.
func batched(t *testing.T, namespace string) *v1alpha1.WebhookEndpoint {
	t.Helper()
	return testenv.Create(t, env, builder.WebhookEndpoint("paged").In(namespace).Events("finding.*").Batched().Build())
}

// started starts controllers with those setups, and then makes places.
func started(t *testing.T, setups ...controllertest.Setup) (namespace string, scan *v1alpha1.Scan, stop func()) {
	t.Helper()
	stop = controllertest.Start(t, env, setups...)
	namespace, scan = places(t)
	return namespace, scan, stop
}

// beside is started with the shared controllers.
func beside(t *testing.T) (namespace string, scan *v1alpha1.Scan) {
	t.Helper()
	shared.Start(t, env)
	return places(t)
}

// places makes a namespace with a scan and the objects that it and its findings refer to.
func places(t *testing.T) (namespace string, scan *v1alpha1.Scan) {
	t.Helper()
	namespace = controllertest.Places(t, env)
	return namespace, testenv.Create(t, env, builder.Scan("s-1", time.Now()).In(namespace).Build())
}

func scanned(namespace, name string) *v1alpha1.Finding {
	return builder.Finding(name).In(namespace).Scan("s-1").Build()
}

func createScanned(t *testing.T, namespace string, names []string) {
	t.Helper()
	findings := make([]client.Object, len(names))
	for i, name := range names {
		findings[i] = scanned(namespace, name)
	}
	env.CreateAtOnce(t, findings...)
}

// recorded waits until each finding of the namespace is reconciled, and expects that many.
func recorded(t *testing.T, namespace string, n int) []v1alpha1.Finding {
	t.Helper()
	findings := env.AwaitFindings(t, namespace)
	harness.Same(t, "findings", n, len(findings))
	return findings
}

func finish(t *testing.T, scan *v1alpha1.Scan) {
	t.Helper()
	env.Patch(t, scan, `{"spec":{"completedAt":"2026-03-01T12:00:00Z","outcome":"Succeeded"}}`)
}

func each(names []string, suffix string) []string {
	out := make([]string, len(names))
	for i := range names {
		out[i] = names[i] + suffix
	}
	slices.Sort(out)
	return out
}

func TestAFinishedScanIsAPageForEndpointsThatBatch(t *testing.T) {
	ns, scan := beside(t)
	endpoint := batched(t, ns)
	env.Create(t, builder.WebhookEndpoint("single").In(ns).Events("finding.*").Build())
	all := controllertest.Names(20)
	createScanned(t, ns, all)
	findings := recorded(t, ns, len(all))
	g := NewWithT(t)
	pages, _ := controllertest.Pages(t, env, g, ns)
	g.Expect(pages).To(BeEmpty(), "the scan runs")
	harness.Eventually(t, func(g Gomega) {
		g.Expect(controllertest.SingleDeliveries(t, env, g, ns, "single")).To(Equal(each(all, " finding.created")), "the other one waits for nothing")
	})

	finish(t, scan)
	controllertest.AwaitAllEmitted(t, env, ns)
	pages, entries := controllertest.Pages(t, env, g, ns)
	g.Expect(entries).To(Equal(each(all, " 1")), "each finding is in one page")
	var want []webhooks.PageEntry
	for i := range findings {
		want = append(want, webhooks.PageEntryOf(&findings[i], findings[i].Status.Transitions[0]))
	}
	expected, err := webhooks.Pages(webhooks.CauseOfScan(scan), endpoint, want)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(expected).To(HaveLen(1))
	g.Expect(pages).To(ConsistOf(HaveField("Name", expected[0].Name)), "the name follows from what is in the page")
	g.Expect(controllertest.SingleDeliveries(t, env, g, ns, "paged")).To(BeEmpty())
	g.Expect(controllertest.SingleDeliveries(t, env, g, ns, "single")).To(Equal(each(all, " finding.created")))

	// A late finding, whose name sorts before all others.
	env.Create(t, scanned(ns, "a-late"))
	recorded(t, ns, len(all)+1)
	controllertest.AwaitAllEmitted(t, env, ns)
	pages, entries = controllertest.Pages(t, env, g, ns)
	g.Expect(pages).To(HaveLen(2))
	g.Expect(entries).To(Equal(each(append(all, "a-late"), " 1")))
}

// indexPages stands in for the findings' controller, whose index of pages the pager uses.
func indexPages(ctx context.Context, mgr ctrl.Manager, _ controller.Options) error {
	_, err := ledger.New(ctx, mgr, ledger.Finding)
	return err
}

// The findings' controller may lag far behind the import.
func TestAPageWaitsForWhatIsStillToBeRecorded(t *testing.T) {
	stop := shared.Alone(t, env)
	ns, scan := places(t)
	g := NewWithT(t)
	batched(t, ns)
	other := testenv.Create(t, env, builder.Scan("s-2", time.Now()).In(ns).Build())
	all := controllertest.Names(20)
	createScanned(t, ns, all[:10])
	marker := scanned(ns, "marker")
	marker.Spec.Scan.ScanID = other.Name
	env.Create(t, marker)
	recorded(t, ns, 11)
	stop()

	createScanned(t, ns, all[10:])
	end := fmt.Sprintf(`{"spec":{"completedAt":%q,"outcome":"Succeeded"}}`, time.Now().UTC().Format(time.RFC3339))
	for _, ended := range []*v1alpha1.Scan{scan, other} {
		env.Patch(t, ended, end)
	}
	stop = controllertest.Start(t, env, Settings{}.SetupWithManager, indexPages)
	harness.Eventually(t, func(g Gomega) {
		pages, _ := controllertest.Pages(t, env, g, ns)
		g.Expect(pages).To(HaveLen(1), "that of the other scan, of which nothing is to come")
	})
	// The scan has been reconciled as often as the other one.
	g.Consistently(func(g Gomega) {
		pages, _ := controllertest.Pages(t, env, g, ns)
		g.Expect(pages).To(HaveLen(1), "a page that is not full, though more is to come")
	}, ledger.PageDelay).Should(Succeed())

	stop()
	shared.Alone(t, env)
	recorded(t, ns, len(all)+1)
	controllertest.AwaitAllEmitted(t, env, ns)
	pages, entries := controllertest.Pages(t, env, g, ns)
	g.Expect(entries).To(Equal(each(append(all, "marker"), " 1")))
	g.Expect(pages).To(HaveLen(2), "one per scan")
}

func TestAControllerThatDiesBetweenPagesDoublesNothing(t *testing.T) {
	left := &atomic.Int32{}
	left.Store(1)
	ns, scan, stop := started(t, controllertest.CutOffPages(Settings{}.SetupWithManager, left),
		finding.Settings{}.SetupWithManager)
	batched(t, ns)
	all := controllertest.Names(webhooks.MaxPageEntries + 1)
	createScanned(t, ns, all)
	recorded(t, ns, len(all))
	finish(t, scan)
	harness.Eventually(t, func(g Gomega) {
		pages, _ := controllertest.Pages(t, env, g, ns)
		g.Expect(pages).To(HaveLen(1))
		g.Expect(left.Load()).To(BeNumerically("<", 0), "the second page was tried")
	})
	stop()

	env.Create(t, scanned(ns, "a-late"))
	stop = shared.Alone(t, env)
	recorded(t, ns, len(all)+1)
	controllertest.AwaitAllEmitted(t, env, ns)
	g := NewWithT(t)
	_, entries := controllertest.Pages(t, env, g, ns)
	g.Expect(entries).To(Equal(each(append(all, "a-late"), " 1")))
	stop()

	g.Expect(env.Client.DeleteAllOf(t.Context(), &v1alpha1.WebhookDelivery{}, client.InNamespace(ns))).To(Succeed())
	shared.Alone(t, env)
	env.Create(t, scanned(ns, "z-marker"))
	recorded(t, ns, len(all)+2)
	controllertest.AwaitAllEmitted(t, env, ns)
	_, entries = controllertest.Pages(t, env, g, ns)
	g.Expect(entries).To(Equal([]string{"z-marker 1"}), "what was retired is not made again, and a later page has a name of its own")
}

func TestPagesWaitForABacklogToEnd(t *testing.T) {
	ns, scan := beside(t)
	endpoint := batched(t, ns)
	g := NewWithT(t)
	controllertest.SetBacklogged(t, env, endpoint, v1alpha1.ReasonTooManyPending)
	env.Create(t, scanned(ns, "f-1"))
	recorded(t, ns, 1)
	finish(t, scan)
	// Another scan in another namespace ended later and has its page: this one would have its page
	// by now.
	other, otherScan := places(t)
	batched(t, other)
	env.Create(t, scanned(other, "f-1"))
	recorded(t, other, 1)
	finish(t, otherScan)
	controllertest.AwaitAllEmitted(t, env, other)
	pages, _ := controllertest.Pages(t, env, g, ns)
	g.Expect(pages).To(BeEmpty())

	controllertest.SetBacklogged(t, env, endpoint, "")
	controllertest.AwaitAllEmitted(t, env, ns)
	_, entries := controllertest.Pages(t, env, g, ns)
	g.Expect(entries).To(Equal([]string{"f-1 1"}))
}

func TestOnlyWhatAKnownScanFoundGoesIntoPages(t *testing.T) {
	ns, scan := beside(t)
	batched(t, ns)
	g := NewWithT(t)
	byNobody := scanned(ns, "by-nobody")
	byNobody.Spec.Scan = nil
	unknown := scanned(ns, "of-an-unknown-scan")
	unknown.Spec.Scan.ScanID = "s-9"
	triaged := scanned(ns, "triaged")
	triaged.Spec.Triage = v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted}
	env.Create(t, byNobody, unknown, triaged)
	want := []string{"by-nobody finding.created", "of-an-unknown-scan finding.created", "triaged finding.triaged"}
	harness.Eventually(t, func(g Gomega) { g.Expect(controllertest.SingleDeliveries(t, env, g, ns, "paged")).To(Equal(want)) })

	controllertest.AwaitLastRequeue(t)
	// Pages of a deleted scan are never made.
	g.Expect(env.Client.Delete(t.Context(), scan)).To(Succeed())
	controllertest.AwaitAllEmitted(t, env, ns)
	g.Expect(controllertest.SingleDeliveries(t, env, g, ns, "paged")).To(ConsistOf(append(want, "triaged finding.created")))
	pages, _ := controllertest.Pages(t, env, g, ns)
	g.Expect(pages).To(BeEmpty())
}

// A finding that changes so often during a scan that its status is full does not wait for a page,
// and is in none.
func TestAFullStatusDoesNotWaitForItsPage(t *testing.T) {
	ns, scan := beside(t)
	batched(t, ns)
	f := testenv.Create(t, env, scanned(ns, "f-1"))
	recorded(t, ns, 1)
	g := NewWithT(t)
	for i := range v1alpha1.MaxStoredTransitions {
		env.Patch(t, f, fmt.Sprintf(`{"spec":{"triage":{"comments":"%d"}}}`, i))
		recorded(t, ns, 1)
	}
	env.Create(t, scanned(ns, "f-2"))
	recorded(t, ns, 2)
	finish(t, scan)
	controllertest.AwaitAllEmitted(t, env, ns)
	g.Expect(controllertest.SingleDeliveries(t, env, g, ns, "paged")).To(ContainElement("f-1 finding.created"))
	_, entries := controllertest.Pages(t, env, g, ns)
	g.Expect(entries).To(Equal([]string{"f-2 1"}))
}

// An endpoint that changes to pages gets none for the single deliveries it already has, though the
// finding still owes them to another endpoint.
func TestWhatAnEndpointHasByItselfIsInNoPage(t *testing.T) {
	stop := shared.Alone(t, env)
	ns, scan := places(t)
	paged, busy := builder.WebhookEndpoint("paged").In(ns).Build(), builder.WebhookEndpoint("busy").In(ns).Build()
	env.Create(t, paged, busy)
	controllertest.SetBacklogged(t, env, busy, v1alpha1.ReasonTooManyPending)
	env.Create(t, scanned(ns, "f-1"))
	harness.Eventually(t, func(g Gomega) {
		g.Expect(controllertest.SingleDeliveries(t, env, g, ns, "paged")).To(Equal([]string{"f-1 finding.created"}))
	})
	// Controllers that run might observe the next finding before the endpoint's change.
	stop()
	env.Patch(t, paged, `{"spec":{"batch":"PerScan"}}`)
	shared.Alone(t, env)
	env.Create(t, scanned(ns, "f-2"))
	recorded(t, ns, 2)
	finish(t, scan)
	harness.Eventually(t, func(g Gomega) {
		_, entries := controllertest.Pages(t, env, g, ns)
		g.Expect(entries).To(Equal([]string{"f-2 1"}))
	})
}

// A page outlives its scan, and holds what it holds though its endpoint no longer asks for pages. The finding still
// owes the change to another endpoint.
func TestWhatAnEndpointHasInAPageIsNotSentByItself(t *testing.T) {
	ns, scan := beside(t)
	batched(t, ns)
	once, busy := builder.WebhookEndpoint("once-paged").In(ns).Batched().Build(), builder.WebhookEndpoint("busy").In(ns).Build()
	env.Create(t, once, busy)
	controllertest.SetBacklogged(t, env, busy, v1alpha1.ReasonTooManyPending)
	env.Create(t, scanned(ns, "f-1"))
	recorded(t, ns, 1)
	finish(t, scan)
	harness.Eventually(t, func(g Gomega) {
		pages, _ := controllertest.Pages(t, env, g, ns)
		g.Expect(pages).To(HaveLen(2), "one per endpoint")
	})

	g := NewWithT(t)
	env.Patch(t, once, `{"spec":{"batch":"None"}}`)
	g.Expect(env.Client.Delete(t.Context(), scan)).To(Succeed())
	controllertest.SetBacklogged(t, env, busy, "")
	controllertest.AwaitAllEmitted(t, env, ns)
	g.Expect(controllertest.SingleDeliveries(t, env, g, ns, "busy")).To(ContainElement("f-1 finding.created"))
	g.Expect(controllertest.SingleDeliveries(t, env, g, ns, "paged")).To(BeEmpty())
	g.Expect(controllertest.SingleDeliveries(t, env, g, ns, "once-paged")).NotTo(ContainElement("f-1 finding.created"))
}
