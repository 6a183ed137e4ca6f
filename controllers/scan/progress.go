package scan

import (
	"fmt"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
)

// progress is the observed progress of a scan.
type progress struct {
	phase   v1alpha1.ScanPhase
	verdict conditions.Verdict
	// changesIn is how long until the phase changes just because time passes; 0: never.
	changesIn time.Duration
}

// progressOf derives the progress from the importer's record, its heartbeat and the time. An end that is recorded late
// replaces the verdict that the scan was abandoned.
func progressOf(scan *v1alpha1.Scan, health liveness, now time.Time) progress {
	switch scan.Spec.Outcome {
	case v1alpha1.ScanSucceeded:
		return progress{phase: v1alpha1.ScanPhaseCompleted, verdict: conditions.Ready("The scan succeeded.")}
	case v1alpha1.ScanFailed:
		verdict := conditions.NotReady(v1alpha1.ReasonScanFailed, "The scan failed: see spec.message, then scan again.")
		return progress{phase: v1alpha1.ScanPhaseFailed, verdict: verdict}
	}
	// The verdict stands until an end is recorded, even if the clock is set back.
	if isAbandoned(&scan.Status) {
		verdict := givenUp("Scan again.")
		verdict.Message = v1alpha1.FindCondition(scan.Status.Conditions, v1alpha1.ConditionReady).Message
		return progress{phase: v1alpha1.ScanPhaseFailed, verdict: *verdict}
	}
	verdict, changesIn := health.dead, health.checkIn
	if scan.Spec.Lease == nil {
		verdict, changesIn = overdue(scan, now)
	}
	if verdict != nil {
		return progress{phase: v1alpha1.ScanPhaseFailed, verdict: *verdict}
	}
	running := conditions.NotReady(v1alpha1.ReasonScanRunning, "The scan is running.")
	return progress{phase: v1alpha1.ScanPhaseRunning, changesIn: changesIn, verdict: running}
}

func givenUp(message string) *conditions.Verdict {
	return new(conditions.Stalled(v1alpha1.ReasonAbandoned, message))
}

// overdue returns the verdict on a scan without a Lease, or nil and how long until it is overdue.
func overdue(scan *v1alpha1.Scan, now time.Time) (verdict *conditions.Verdict, in time.Duration) {
	if left := abandonedAt(scan).Sub(now); left > 0 {
		return nil, left
	}
	return givenUp("No end was recorded within an hour of the start: the import has died. Scan again."), 0
}

// abandonedAt is when a scan with neither an end nor a Lease counts as abandoned.
func abandonedAt(scan *v1alpha1.Scan) time.Time { return scan.Began().Add(v1alpha1.ScanAbandonedAfter) }

// isAbandoned reports whether the status holds the verdict that the scan was abandoned.
func isAbandoned(status *v1alpha1.ScanStatus) bool {
	return conditions.ReadyReason(status.Conditions) == v1alpha1.ReasonAbandoned
}

// progressText returns the import's progress as text for a printer column, which can show only one
// path.
func progressText(p *v1alpha1.ScanProgress) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", p.Done, p.Total)
}
