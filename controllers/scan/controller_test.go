package scan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func phase(t *testing.T, scan *v1alpha1.Scan, phase v1alpha1.ScanPhase, reason string) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		status := testenv.Get(t, g, env, scan).Status
		g.Expect(status.Phase).To(Equal(phase))
		g.Expect(status.ObservedGeneration).To(Equal(scan.Generation))
		g.Expect(v1alpha1.FindCondition(status.Conditions, v1alpha1.ConditionReady).Reason).To(Equal(reason))
	})
}

func TestPhaseFollowsTheImporter(t *testing.T) {
	ns := shared.Namespace(t, env)
	scan := builder.Scan("s-1", time.Now()).In(ns).Mutate(func(s *v1alpha1.Scan) {
		s.Spec.Progress = &v1alpha1.ScanProgress{Done: 1200, Total: 5000}
	}).Build()
	failed := builder.Scan("s-2", time.Now()).In(ns).Ended(time.Now(), v1alpha1.ScanFailed).Build()
	env.Create(t, scan, failed)
	phase(t, scan, v1alpha1.ScanPhaseRunning, v1alpha1.ReasonScanRunning)
	harness.Same(t, "progress", "1200/5000", scan.Status.Progress)
	phase(t, failed, v1alpha1.ScanPhaseFailed, v1alpha1.ReasonScanFailed)

	env.Patch(t, scan, `{"spec":{"completedAt":"2026-03-01T12:00:00Z","outcome":"Succeeded","counts":{"created":3}}}`)
	phase(t, scan, v1alpha1.ScanPhaseCompleted, v1alpha1.ReasonReconciled)

	harness.Eventually(t, func(g Gomega) {
		list := testenv.List(t, g, env, &eventsv1.EventList{}, client.InNamespace(ns))
		told := map[string]string{}
		for _, event := range list.Items {
			told[event.Regarding.Name+" "+event.Type] = event.Reason
		}
		g.Expect(told).To(Equal(map[string]string{"s-1 Normal": "Completed", "s-2 Warning": "ScanFailed"}))
	})
}

// The Review's events report what the scan of a pull request did; its end is recorded nevertheless.
func TestAScanOfAPullRequestIsNoEvent(t *testing.T) {
	ns := shared.Namespace(t, env)
	ended := builder.Scan("s-1", time.Now()).In(ns).OfPullRequest("r-1", 7).Ended(time.Now(), v1alpha1.ScanSucceeded).Build()
	dead := builder.Scan("s-2", time.Now()).In(ns).OfPullRequest("r-1", 7).Mutate(func(s *v1alpha1.Scan) {
		s.Spec.Lease = &v1alpha1.ScanLease{Name: "review-none", Holder: "nobody"}
	}).Build()
	env.Create(t, ended, dead)
	phase(t, ended, v1alpha1.ScanPhaseCompleted, v1alpha1.ReasonReconciled)
	phase(t, dead, v1alpha1.ScanPhaseFailed, v1alpha1.ReasonAbandoned)
	for _, scan := range []*v1alpha1.Scan{ended, dead} {
		if got := testenv.Get(t, NewWithT(t), env, scan).Status.Transitions; len(got) != 0 {
			t.Errorf("scan %s has the transitions %+v", scan.Name, got)
		}
	}
}

func TestScanWithNoEndIsAbandonedByTheClockAlone(t *testing.T) {
	ns := shared.Namespace(t, env)
	// Two seconds of its hour are left.
	scan := testenv.Create(t, env, builder.Scan("s-1", time.Now().Add(2*time.Second-v1alpha1.ScanAbandonedAfter)).In(ns).Build())
	phase(t, scan, v1alpha1.ScanPhaseFailed, v1alpha1.ReasonAbandoned)
	g := NewWithT(t)
	g.Expect(v1alpha1.IsConditionTrue(scan.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue(), "a person must scan again")

	env.Patch(t, scan, `{"spec":{"completedAt":"2026-03-01T12:00:00Z","outcome":"Succeeded"}}`)
	phase(t, scan, v1alpha1.ScanPhaseCompleted, v1alpha1.ReasonReconciled)
	g.Expect(v1alpha1.FindCondition(scan.Status.Conditions, v1alpha1.ConditionStalled)).To(BeNil(), "an end that comes late still counts")
}

func TestProgressOf(t *testing.T) {
	created := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	at := func(offset time.Duration) *v1alpha1.Scan {
		scan := builder.Scan("s", created.Add(offset)).Build()
		scan.CreationTimestamp = metav1.NewTime(created)
		return scan
	}
	ended := func(scan *v1alpha1.Scan, outcome v1alpha1.ScanOutcome) *v1alpha1.Scan {
		scan.Spec.Outcome = outcome
		return scan
	}
	beating := func(scan *v1alpha1.Scan) *v1alpha1.Scan {
		scan.Spec.Lease = &v1alpha1.ScanLease{Name: "import-1", Holder: "runner-1"}
		return scan
	}
	cases := []struct {
		reason    string
		scan      *v1alpha1.Scan
		importer  liveness
		now       time.Duration
		phase     v1alpha1.ScanPhase
		condition string
		changesIn time.Duration
	}{
		{"a fresh scan runs and is checked when its hour is over", at(0), liveness{}, 0, v1alpha1.ScanPhaseRunning, v1alpha1.ReasonScanRunning, time.Hour},
		{"the look comes at the exact moment", at(-time.Minute), liveness{}, time.Minute, v1alpha1.ScanPhaseRunning, v1alpha1.ReasonScanRunning, 58 * time.Minute},
		{"a moment before the hour it still runs", at(0), liveness{}, time.Hour - 1, v1alpha1.ScanPhaseRunning, v1alpha1.ReasonScanRunning, 1},
		{"at the hour it is abandoned, and not checked again", at(0), liveness{}, time.Hour, v1alpha1.ScanPhaseFailed, v1alpha1.ReasonAbandoned, 0},
		{"a start in the future counts as the creation", at(48 * time.Hour), liveness{}, time.Hour, v1alpha1.ScanPhaseFailed, v1alpha1.ReasonAbandoned, 0},
		{"an end needs no clock", ended(at(0), v1alpha1.ScanSucceeded), liveness{}, 0, v1alpha1.ScanPhaseCompleted, v1alpha1.ReasonReconciled, 0},
		{"an end that comes late counts", ended(at(0), v1alpha1.ScanSucceeded), liveness{}, 9 * time.Hour, v1alpha1.ScanPhaseCompleted, v1alpha1.ReasonReconciled, 0},
		{"a failure is the importer's word", ended(at(0), v1alpha1.ScanFailed), liveness{}, 9 * time.Hour, v1alpha1.ScanPhaseFailed, v1alpha1.ReasonScanFailed, 0},
		{"while its heartbeat is heard a scan runs, for hours too", beating(at(-9 * time.Hour)), liveness{checkIn: time.Second}, time.Hour,
			v1alpha1.ScanPhaseRunning, v1alpha1.ReasonScanRunning, time.Second},
		{"without its heartbeat it is abandoned", beating(at(0)), liveness{dead: givenUp("its Lease does not exist")}, time.Minute,
			v1alpha1.ScanPhaseFailed, v1alpha1.ReasonAbandoned, 0},
		{"an end counts more than the heartbeat", ended(beating(at(0)), v1alpha1.ScanSucceeded), liveness{dead: givenUp("its Lease does not exist")}, time.Minute,
			v1alpha1.ScanPhaseCompleted, v1alpha1.ReasonReconciled, 0},
	}
	for _, c := range cases {
		got := progressOf(c.scan, c.importer, created.Add(c.now))
		if got.phase != c.phase || got.verdict.Reason != c.condition || got.changesIn != c.changesIn {
			t.Errorf("%s: got %s, %s, %s; want %s, %s, %s", c.reason,
				got.phase, got.verdict.Reason, got.changesIn, c.phase, c.condition, c.changesIn)
		}
	}
}
