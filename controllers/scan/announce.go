package scan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// announce sends an Event with the result of a scan when it has ended.
func (r *Reconciler) announce(s *scope) {
	if s.Before.Phase == s.Status.Phase {
		return
	}
	switch s.Status.Phase {
	case v1alpha1.ScanPhaseCompleted:
		r.Recorder.Eventf(s.Object, nil, corev1.EventTypeNormal, "Completed", "Scan", "%s", endNote(&s.Object.Spec))
	case v1alpha1.ScanPhaseFailed:
		ready := v1alpha1.FindCondition(s.Status.Conditions, v1alpha1.ConditionReady)
		r.Recorder.Eventf(s.Object, nil, corev1.EventTypeWarning, ready.Reason, "Scan", "%s", ready.Message)
	case v1alpha1.ScanPhaseRunning:
	}
}

func endNote(spec *v1alpha1.ScanSpec) string {
	counts := spec.Counts
	switch {
	case counts == nil:
		return "The scan succeeded."
	case spec.Review != nil:
		return fmt.Sprintf("Issues of pull request %d created: %d, seen again: %d, reopened: %d, unchanged: %d; results skipped: %d.",
			spec.Review.PRNumber, counts.Created, counts.Updated, counts.Reopened, counts.Unchanged, counts.Skipped)
	}
	return fmt.Sprintf("Findings created: %d, updated: %d, closed: %d, reopened: %d, unchanged: %d; results skipped: %d.",
		counts.Created, counts.Updated, counts.Closed, counts.Reopened, counts.Unchanged, counts.Skipped)
}
