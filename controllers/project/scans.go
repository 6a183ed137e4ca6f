package project

import (
	"cmp"
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// observeScans records the last scan and the last successful one. Scans are retired, so recorded
// values stay if no scan is left to replace them. Retention removes no running scan: if the recorded one is gone,
// somebody has deleted it.
func (r *Reconciler) observeScans(ctx context.Context, s *scope) error {
	started, succeeded, err := r.latest.Of(ctx, s.Object)
	if err != nil {
		return err
	}
	last, before := asLastScan(started), s.Status.LastScan
	if last != nil || before != nil && before.Status == v1alpha1.ScanPhaseRunning {
		s.Status.LastScan = last
	}
	if succeeded != nil {
		s.Status.LastScannedAt = succeeded.Spec.CompletedAt.DeepCopy()
	}
	return nil
}

// asLastScan returns nil for no scan. A scan without a status yet counts as running.
func asLastScan(scan *v1alpha1.Scan) *v1alpha1.ProjectLastScan {
	if scan == nil {
		return nil
	}
	return &v1alpha1.ProjectLastScan{ID: scan.Name, Status: cmp.Or(scan.Status.Phase, v1alpha1.ScanPhaseRunning)}
}
