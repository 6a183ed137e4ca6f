package scan

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
)

// progress is how far a scan is.
type progress struct {
	phase   v1alpha1.ScanPhase
	verdict conditions.Verdict
	// changesIn is how long until time alone changes the phase; 0: never.
	changesIn time.Duration
}

// progressOf decides from what the importer recorded and the time. An end that is recorded
// late still counts: it takes back the verdict that the scan was abandoned.
func progressOf(scan *v1alpha1.Scan, now time.Time) progress {
	switch scan.Spec.Outcome {
	case v1alpha1.ScanSucceeded:
		return progress{phase: v1alpha1.ScanPhaseCompleted, verdict: conditions.Ready("The scan succeeded.")}
	case v1alpha1.ScanFailed:
		return progress{phase: v1alpha1.ScanPhaseFailed, verdict: conditions.Verdict{
			Reason: v1alpha1.ReasonScanFailed, Message: "The scan failed: see spec.message, then scan again.",
		}}
	}
	left := abandonedAt(scan).Sub(now)
	// Once given, the verdict stands until an end is recorded: a clock that goes back is none.
	if left <= 0 || isAbandoned(&scan.Status) {
		return progress{phase: v1alpha1.ScanPhaseFailed, verdict: conditions.Verdict{
			Stalled: true, Reason: v1alpha1.ReasonAbandoned,
			Message: "No end was recorded within an hour of the start: the import has died. Scan again.",
		}}
	}
	return progress{phase: v1alpha1.ScanPhaseRunning, changesIn: left, verdict: conditions.Verdict{
		Reason: v1alpha1.ReasonScanRunning, Message: "The scan is running.",
	}}
}

// abandonedAt is when a scan with no end counts as abandoned. A scan cannot have started after
// it was recorded, so a start in the future is the importer's clock running ahead, and must
// not keep the scan running for as long as the clock is wrong.
func abandonedAt(scan *v1alpha1.Scan) time.Time {
	start := scan.Spec.StartedAt.Time
	if recorded := scan.CreationTimestamp.Time; start.After(recorded) {
		start = recorded
	}
	return start.Add(v1alpha1.ScanAbandonedAfter)
}

// isAbandoned says that the status holds the verdict that the scan was abandoned.
func isAbandoned(status *v1alpha1.ScanStatus) bool {
	ready := v1alpha1.FindCondition(status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonAbandoned
}
