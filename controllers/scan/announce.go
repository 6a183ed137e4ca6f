package scan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// announce tells people that a scan has ended, and with what.
func (r *Reconciler) announce(scan *v1alpha1.Scan, p progress) {
	switch p.phase {
	case v1alpha1.ScanPhaseCompleted:
		r.recorder.Eventf(scan, nil, corev1.EventTypeNormal, "Completed", "Scan", "%s", countsNote(scan.Spec.Counts))
	case v1alpha1.ScanPhaseFailed:
		r.recorder.Eventf(scan, nil, corev1.EventTypeWarning, p.verdict.Reason, "Scan", "%s", p.verdict.Message)
	case v1alpha1.ScanPhaseRunning:
	}
}

func countsNote(counts *v1alpha1.ScanCounts) string {
	if counts == nil {
		return "The scan succeeded."
	}
	return fmt.Sprintf("Findings created: %d, updated: %d, closed: %d, reopened: %d, unchanged: %d; results skipped: %d.",
		counts.Created, counts.Updated, counts.Closed, counts.Reopened, counts.Unchanged, counts.Skipped)
}
