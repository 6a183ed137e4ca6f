package scan

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
	"github.com/appsec-dev/findings-operator/internal/transitions"
)

// ending is how a scan ended; the zero value if it has not.
type ending struct {
	outcome v1alpha1.ScanOutcome
	// by is the importer, or the controller that marked the scan as abandoned.
	by string
}

// endingOf returns how the scan ended, from the importer's record and the verdict of progressOf.
func endingOf(scan *v1alpha1.Scan, p progress) ending {
	switch {
	case scan.Spec.Outcome != "":
		return ending{scan.Spec.Outcome, v1alpha1.ScannerFieldManagerPrefix + scan.Spec.Tool}
	case p.phase == v1alpha1.ScanPhaseFailed:
		return ending{v1alpha1.ScanFailed, v1alpha1.ControllerFieldManager}
	}
	return ending{}
}

// endingBefore returns how the scan had ended according to its previous status. The status does not record the author:
// any end but abandonment came from the importer.
func endingBefore(status *v1alpha1.ScanStatus, importer string) ending {
	switch {
	case isAbandoned(status):
		return ending{v1alpha1.ScanFailed, v1alpha1.ControllerFieldManager}
	case status.Phase == v1alpha1.ScanPhaseCompleted:
		return ending{v1alpha1.ScanSucceeded, importer}
	case status.Phase == v1alpha1.ScanPhaseFailed:
		return ending{v1alpha1.ScanFailed, importer}
	}
	return ending{}
}

// transitionsOf returns the scan's transitions, with its end added if that is new. An end recorded after the scan was
// abandoned is another transition, even a failure: the first one was a guess without counts. The scan of a pull request
// gets no transitions, because the events of its Review report what it did.
func transitionsOf(scan *v1alpha1.Scan, p progress, now time.Time) []v1alpha1.Transition {
	status := &scan.Status
	if scan.IsOfReview() {
		return status.Transitions
	}
	history := transitions.Of(status.Transitions, status.EmittedSeq)
	is := endingOf(scan, p)
	was := endingBefore(status, v1alpha1.ScannerFieldManagerPrefix+scan.Spec.Tool)
	if is == was || is.outcome == "" {
		return status.Transitions
	}
	return history.Record(endedAt(scan, is, now), v1alpha1.Transition{
		Type: v1alpha1.TransitionCompleted, From: string(was.outcome), To: string(is.outcome), By: is.by,
	})
}

// endedAt returns the time of the end: when the importer wrote it, by the API server's clock; when its heartbeat was
// missed; or when the scan was overdue. It does not use completedAt, which comes from the importer's clock, because an
// endpoint gets no events older than itself.
func endedAt(scan *v1alpha1.Scan, is ending, now time.Time) v1alpha1.Time {
	if is.by != v1alpha1.ControllerFieldManager {
		return lastwrite.UpdatedAt(scan, lastwrite.Observed{}, now)
	}
	at := abandonedAt(scan)
	if scan.Spec.Lease != nil {
		at = now
	}
	if recorded := scan.CreationTimestamp.Time; at.Before(recorded) {
		at = recorded
	}
	return v1alpha1.NewTime(at)
}
