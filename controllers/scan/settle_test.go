package scan

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/finding"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// endNow ends the scan as an import does that wrote the finding last.
func endNow(t *testing.T, scan *v1alpha1.Scan, last *v1alpha1.Finding) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"completedAt":%q,"outcome":"Succeeded","counts":{"created":1},
		"lastChange":{"finding":%q,"resourceVersion":%q}}}`,
		time.Now().UTC().Format(time.RFC3339), last.Name, last.ResourceVersion)
	env.Patch(t, scan, patch)
}

// isSettled waits until the condition has the status.
func isSettled(t *testing.T, scan *v1alpha1.Scan, status metav1.ConditionStatus) *v1alpha1.Condition {
	t.Helper()
	var condition *v1alpha1.Condition
	harness.Eventually(t, func(g Gomega) {
		condition = v1alpha1.FindCondition(testenv.Get(t, g, env, scan).Status.Conditions, v1alpha1.ConditionSettled)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Status).To(Equal(status))
	})
	return condition
}

func TestAScanIsSettledOnceEachStatusHasFollowed(t *testing.T) {
	ns, scan, stop := started(t, Settings{}.SetupWithManager)
	last := testenv.Create(t, env, scanned(ns, "f-1"))
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, scan).Status.Phase).To(Equal(v1alpha1.ScanPhaseRunning))
	})
	g := NewWithT(t)
	g.Expect(v1alpha1.FindCondition(scan.Status.Conditions, v1alpha1.ConditionSettled)).To(BeNil(), "it runs")
	endNow(t, scan, last)
	pending := isSettled(t, scan, metav1.ConditionFalse)
	g.Expect(pending.Reason).To(Equal(v1alpha1.ReasonStatusesPending))
	stop()

	shared.Alone(t, env)
	done := isSettled(t, scan, metav1.ConditionTrue)
	g.Expect(done.Reason).To(Equal(v1alpha1.ReasonStatusesRecorded))
	g.Expect(testenv.Get(t, g, env, last).Status.ObservedGeneration).To(Equal(last.Generation))
}

// The watch of scans may be ahead of that of findings: what is not seen yet is not recorded either.
func TestAScanIsNotSettledBeforeItsLastChangeIsSeen(t *testing.T) {
	ns, scan := beside(t)
	unseen := scanned(ns, "f-unseen")
	unseen.ResourceVersion = "1"
	endNow(t, scan, unseen)
	isSettled(t, scan, metav1.ConditionFalse)
	unseen.ResourceVersion = ""
	env.Create(t, unseen)
	isSettled(t, scan, metav1.ConditionTrue)
	testenv.Get(t, NewWithT(t), env, unseen)
	NewWithT(t).Expect(unseen.Status.ObservedGeneration).To(Equal(unseen.Generation))
}

// Settled is about statuses only. A quota may refuse pages for as long as a receiver is down.
func TestAScanIsSettledThoughItsPagesCannotBeMade(t *testing.T) {
	left := &atomic.Int32{}
	ns, scan, _ := started(t, controllertest.CutOffPages(Settings{}.SetupWithManager, left), finding.Settings{}.SetupWithManager)
	unseen := scanned(ns, "f-unseen")
	batched(t, ns)
	env.Create(t, scanned(ns, "f-1"))
	recorded(t, ns, 1)
	unseen.ResourceVersion = "1"
	endNow(t, scan, unseen)
	isSettled(t, scan, metav1.ConditionFalse)
	harness.Eventually(t, func(g Gomega) { g.Expect(left.Load()).To(BeNumerically("<", 0), "a page was tried") })
	unseen.ResourceVersion = ""
	env.Create(t, unseen)
	isSettled(t, scan, metav1.ConditionTrue)
	pages, _ := controllertest.Pages(t, env, NewWithT(t), ns)
	NewWithT(t).Expect(pages).To(BeEmpty())
}

// A rescan without a difference costs no further write.
func TestAScanThatChangedNothingIsSettledWhenItEnds(t *testing.T) {
	_, scan := beside(t)
	patch := fmt.Sprintf(`{"spec":{"completedAt":%q,"outcome":"Succeeded","counts":{"unchanged":7}}}`,
		time.Now().UTC().Format(time.RFC3339))
	env.Patch(t, scan, patch)
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, scan).Status.Phase).To(Equal(v1alpha1.ScanPhaseCompleted))
	})
	NewWithT(t).Expect(v1alpha1.IsConditionTrue(scan.Status.Conditions, v1alpha1.ConditionSettled)).To(BeTrue())
}

// A finding that needs no status is waited for until its controller reconciles it: a policy may decide about it, and
// its deliveries must be made.
func TestAScanWaitsForNoStatusThatIsImplied(t *testing.T) {
	implied := finding.NewImplied()
	ns, scan, stop := started(t, Settings{Implied: implied}.SetupWithManager)
	last := scanned(ns, "f-1")
	env.Create(t, builder.WebhookEndpoint("e").In(ns).Build(), last)
	endNow(t, scan, last)
	isSettled(t, scan, metav1.ConditionFalse)
	NewWithT(t).Consistently(func(g Gomega) { // also once the cache shows the finding
		conditions := testenv.Get(t, g, env, scan).Status.Conditions
		g.Expect(v1alpha1.IsConditionTrue(conditions, v1alpha1.ConditionSettled)).To(BeFalse())
	}).WithTimeout(2 * settleInterval).Should(Succeed())
	stop()
	controllertest.Start(t, env, Settings{Implied: implied}.SetupWithManager,
		finding.Settings{Implied: implied}.SetupWithManager)
	isSettled(t, scan, metav1.ConditionTrue)
	NewWithT(t).Expect(testenv.Get(t, NewWithT(t), env, last).Status.ObservedGeneration).To(BeZero())
}

// A finding that was left without a status gets none because of a later endpoint, and is not waited for.
func TestAScanIsSettledThoughAnEndpointWasCreatedMeanwhile(t *testing.T) {
	implied := finding.NewImplied()
	ns, scan, _ := started(t, Settings{Implied: implied}.SetupWithManager,
		finding.Settings{Implied: implied}.SetupWithManager)
	last := testenv.Create(t, env, scanned(ns, "f-1"))
	harness.Eventually(t, func(g Gomega) { g.Expect(implied.Suffice(last)).To(BeTrue()) })
	env.Create(t, builder.WebhookEndpoint("e").In(ns).Build())
	endNow(t, scan, last)
	isSettled(t, scan, metav1.ConditionTrue)
}

func TestWhichScansSettle(t *testing.T) {
	running, ended := v1alpha1.ScanStatus{Phase: v1alpha1.ScanPhaseRunning}, v1alpha1.ScanStatus{Phase: v1alpha1.ScanPhaseCompleted}
	pending, done := ended, ended
	pending.Conditions = []v1alpha1.Condition{{Type: v1alpha1.ConditionSettled, Status: metav1.ConditionFalse}}
	done.Conditions = []v1alpha1.Condition{{Type: v1alpha1.ConditionSettled, Status: metav1.ConditionTrue}}
	given := v1alpha1.ScanStatus{Phase: v1alpha1.ScanPhaseFailed, Conditions: []v1alpha1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAbandoned,
	}}}
	scan := builder.Scan("s-1", time.Now()).Ended(time.Now(), v1alpha1.ScanSucceeded).Build()
	review := scan.DeepCopy()
	review.Spec.Review = &v1alpha1.ScanReview{Name: "r-1", PRNumber: 1}
	for _, c := range []struct {
		reason string
		scan   *v1alpha1.Scan
		before v1alpha1.ScanStatus
		want   bool
	}{
		{"it has not ended", builder.Scan("s-1", time.Now()).Build(), running, false},
		{"it has just ended", scan, running, true},
		{"statuses are missing", scan, pending, true},
		{"it is settled", scan, done, false},
		{"it ended before the condition existed", scan, ended, false},
		{"it ended after it was given up", scan, given, true},
		{"it is of a pull request", review, running, false},
	} {
		harness.Same(t, c.reason, c.want, settles(c.scan, &c.before))
	}
}
