package triagepolicy

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// many findings need two pages.
const many = webhooks.MaxPageEntries + 1

// batches creates an endpoint that gets these events, in pages where possible.
func (r room) batches(events ...v1alpha1.WebhookEventPattern) *v1alpha1.WebhookEndpoint {
	r.t.Helper()
	return testenv.Create(r.t, env, builder.WebhookEndpoint("paged").In(r.namespace).Events(events...).Batched().Build())
}

// pages returns the pages in the room, and their entries as "finding seq".
func (r room) pages(g Gomega) ([]v1alpha1.WebhookDelivery, []string) {
	r.t.Helper()
	return controllertest.Pages(r.t, env, g, r.namespace)
}

// eachOf returns "finding seq" for each of n findings and each seq, like pages.
func eachOf(n int, seqs ...int64) (out []string) {
	for i := range n {
		for _, seq := range seqs {
			out = append(out, fmt.Sprintf("f-%03d %d", i, seq))
		}
	}
	return out
}

func TestWhatAPolicyDoesToManyIsAFewPagesForEndpointsThatBatch(t *testing.T) {
	g, r := NewWithT(t), running(t)
	const some = 20
	r.findsMany(some)
	r.batches("finding.judged")
	policy := builder.TriagePolicy("mute", "finding.ruleID == 'G1'").In(r.namespace).Build()
	seqs, before := []int64{}, 0
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"it comes into force", func() {
			env.Create(t, policy)
			r.counts(policy, some, some, 0, 0, 0, 0)
			g.Expect(policy.Status.Samples).To(HaveLen(v1alpha1.MaxPolicySamples))
			g.Expect(policy.Status.Conditions).To(HaveEach(HaveField("Status", Not(Equal(metav1.ConditionUnknown)))))
		}},
		{"it decides otherwise", func() { env.Patch(t, policy, `{"spec":{"set":{"userStatus":"active"}}}`) }},
		{"it is deleted", func() { harness.Must(t, env.Client.Delete(t.Context(), policy)) }},
	} {
		step.do()
		seqs = append(seqs, int64(len(seqs)+2))
		r.recorded(seqs[len(seqs)-1])
		controllertest.AwaitAllEmitted(t, env, r.namespace)
		pages, entries := r.pages(g)
		g.Expect(entries).To(Equal(eachOf(some, seqs...)), step.what)
		g.Expect(len(pages)-before).To(BeNumerically("<=", 6), "%s: not a page per finding", step.what)
		before = len(pages)
		for i := range pages {
			event := pages[i].Spec.Event
			g.Expect(event.Subject).To(Equal(v1alpha1.WebhookEventSubject{Kind: "TriagePolicy", Name: "mute"}))
			g.Expect(pages[i].Spec.Payload).To(ContainSubstring(`"data":{"policy_id":"mute","findings":[`))
			g.Expect(pages[i].Spec.EndpointRef.Name).To(BeEquivalentTo("paged"))
		}
		g.Expect(controllertest.SingleDeliveries(t, env, g, r.namespace, "paged")).To(BeEmpty(), step.what)
	}
}

// Deleting a policy withdraws all its verdicts, and there is no object of that name from then on.
func TestAControllerThatDiesBetweenThePagesOfADeletedPolicyLosesAndDoublesNothing(t *testing.T) {
	left := &atomic.Int32{}
	left.Store(1)
	stop := controllertest.Start(t, env, finding.Settings{}.SetupWithManager,
		controllertest.CutOffPages(SetupWithManager, left))
	g, r := NewWithT(t), newRoom(t)
	r.findsMany(many)
	policy := r.declares("mute", "finding.ruleID == 'G1'", nil)
	r.recorded(2)
	r.batches("finding.judged")
	harness.Must(t, env.Client.Delete(t.Context(), policy))
	r.recorded(3)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(left.Load()).To(BeNumerically("<", 0), "another page was tried")
		pages, _ := r.pages(g)
		g.Expect(pages).To(HaveLen(1))
	})
	stop()

	stop = shared.Alone(t, env)
	controllertest.AwaitAllEmitted(t, env, r.namespace)
	_, entries := r.pages(g)
	g.Expect(entries).To(Equal(eachOf(many, 3)))
	stop()

	g.Expect(env.Client.DeleteAllOf(t.Context(), &v1alpha1.WebhookDelivery{}, client.InNamespace(r.namespace))).To(Succeed())
	shared.Alone(t, env)
	r.declares("mute", "finding.ruleID == 'G2'", nil)
	marker := r.finds("marker", "G2")
	r.is(marker, v1alpha1.FindingStateOpenMuted, "mute")
	controllertest.AwaitAllEmitted(t, env, r.namespace)
	_, entries = r.pages(g)
	g.Expect(entries).To(Equal([]string{"marker 2"}), "what was retired is not made again")
}

func TestAPolicysPagesWaitUntilItIsQuiet(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	setup := func(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
		harness.Must(t, setUpPages(ctx, mgr, options, clock))
		return newReconciler(reconcile.NewBase(mgr)).setUp(mgr, options)
	}
	controllertest.Start(t, env, finding.Settings{}.SetupWithManager, setup)
	g, r := NewWithT(t), newRoom(t)
	r.findsMany(many)
	endpoint := r.batches("finding.judged")
	controllertest.SetBacklogged(t, env, endpoint, v1alpha1.ReasonTooManyPending)
	r.declares("mute", "finding.ruleID == 'G1'", nil)
	var newest time.Time // of the entries that do not fit into the full page, which is sorted by name
	for _, f := range r.recorded(2)[webhooks.MaxPageEntries:] {
		if at := f.Status.Transitions[1].At.Time; at.After(newest) {
			newest = at
		}
	}
	clock.SetTime(newest.Add(ledger.PageDelay - time.Millisecond))
	controllertest.SetBacklogged(t, env, endpoint, "")
	harness.Eventually(t, func(g Gomega) {
		pages, entries := r.pages(g)
		g.Expect(pages).To(HaveLen(1), "the full page")
		g.Expect(entries).To(HaveLen(webhooks.MaxPageEntries))
	})
	g.Consistently(func(g Gomega) {
		pages, _ := r.pages(g)
		g.Expect(pages).To(HaveLen(1), "a page that is not full, though more may come")
	}, ledger.PageDelay).Should(Succeed())

	clock.SetTime(newest.Add(ledger.PageDelay))
	controllertest.AwaitAllEmitted(t, env, r.namespace)
	pages, entries := r.pages(g)
	g.Expect(pages).To(HaveLen(2))
	g.Expect(entries).To(Equal(eachOf(many, 2)))
}

func TestANewFindingsVerdictIsInItsScansPage(t *testing.T) {
	g, r := NewWithT(t), running(t)
	r.batches("finding.*")
	run := testenv.Create(t, env, builder.Scan("s-1", time.Now()).In(r.namespace).Build())
	policy := r.declares("mute", "true", nil)
	r.says(policy, v1alpha1.ReasonNeverMatched, ok)
	f := testenv.Create(t, env, builder.Finding("f-1").In(r.namespace).Scan("s-1").Build())
	r.is(f, v1alpha1.FindingStateOpenMuted, "mute")
	byNobody := r.finds("f-2", "G1")
	r.is(byNobody, v1alpha1.FindingStateOpenMuted, "mute")
	harness.Eventually(t, func(g Gomega) {
		_, entries := r.pages(g)
		g.Expect(entries).To(Equal([]string{"f-2 2"}), "the policy's page is without what is the scan's")
	})

	env.Patch(t, run, `{"spec":{"completedAt":"2026-03-01T12:00:00Z","outcome":"Succeeded"}}`)
	controllertest.AwaitAllEmitted(t, env, r.namespace)
	pages, entries := r.pages(g)
	g.Expect(entries).To(Equal([]string{"f-1 1", "f-1 2", "f-2 2"}))
	g.Expect(pages).To(HaveLen(2))
	for i := range pages {
		want := v1alpha1.WebhookEventSubject{Kind: "Scan", Name: "s-1"}
		if webhooks.Covered(&pages[i])[0].FindingID == "f-2" {
			want = v1alpha1.WebhookEventSubject{Kind: "TriagePolicy", Name: "mute"}
		}
		g.Expect(pages[i].Spec.Event.Subject).To(Equal(want))
	}
	g.Expect(controllertest.SingleDeliveries(t, env, g, r.namespace, "paged")).To(Equal([]string{"f-2 finding.created"}))
}

// A later verdict on a finding of a scan does not wait for the end of the scan.
func TestAVerdictOfLaterDoesNotWaitForTheScan(t *testing.T) {
	g, r := NewWithT(t), running(t)
	r.batches("finding.*")
	run := testenv.Create(t, env, builder.Scan("s-1", time.Now()).In(r.namespace).Build())
	f := testenv.Create(t, env, builder.Finding("f-1").In(r.namespace).Scan("s-1").Build())
	r.is(f, v1alpha1.FindingStateOpen, "")
	policy := r.declares("mute", "true", nil)
	has := func(want ...string) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			_, entries := r.pages(g)
			g.Expect(entries).To(Equal(want))
		})
	}
	has("f-1 2")
	env.Patch(t, policy, `{"spec":{"set":{"userStatus":"active"}}}`)
	has("f-1 2", "f-1 3")
	g.Expect(testenv.Get(t, g, env, f).Status.EmittedSeq).To(BeZero(), "the scan's page is still to come")
	env.Patch(t, run, `{"spec":{"completedAt":"2026-03-01T12:00:00Z","outcome":"Succeeded"}}`)
	controllertest.AwaitAllEmitted(t, env, r.namespace)
	has("f-1 1", "f-1 2", "f-1 3")
}

func TestThePagesOfADeletedPolicyWaitForABacklogToEnd(t *testing.T) {
	g, r, other := NewWithT(t), running(t), newRoom(t)
	endpoint := r.batches("finding.judged")
	controllertest.SetBacklogged(t, env, endpoint, v1alpha1.ReasonTooManyPending)
	r.findsMany(1)
	policy := r.declares("mute", "true", nil)
	r.recorded(2)
	harness.Must(t, env.Client.Delete(t.Context(), policy))
	r.recorded(3)
	// Another policy in another namespace has its page, although later: this one would have its
	// page by now.
	other.batches("finding.judged")
	other.findsMany(1)
	other.declares("mute", "true", nil)
	other.recorded(2)
	controllertest.AwaitAllEmitted(t, env, other.namespace)
	pages, _ := r.pages(g)
	g.Expect(pages).To(BeEmpty())

	controllertest.SetBacklogged(t, env, endpoint, "")
	controllertest.AwaitAllEmitted(t, env, r.namespace)
	pages, entries := r.pages(g)
	g.Expect(entries).To(Equal(eachOf(1, 2, 3)))
	g.Expect(pages).To(HaveLen(1))
}
