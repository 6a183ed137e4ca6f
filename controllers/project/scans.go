package project

import (
	"cmp"
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/scans"
)

// observeScans records the last scan and the last that succeeded. Scans are retired, so what
// was once recorded stands where no scan is left that says otherwise.
func (r *Reconciler) observeScans(ctx context.Context, s *scope) error {
	known, err := scans.OfBranch(ctx, r.Client, s.Object, index.Project)
	if err != nil {
		return err
	}
	if last := asLastScan(scans.LastStarted(known)); last != nil {
		s.Status.LastScan = last
	}
	if at := scans.LastSuccess(known); at != nil {
		s.Status.LastScannedAt = at
	}
	return nil
}

// asLastScan is nil for no scan. A scan that its own controller has yet to see is running as
// far as anyone knows.
func asLastScan(scan *v1alpha1.Scan) *v1alpha1.ProjectLastScan {
	if scan == nil {
		return nil
	}
	return &v1alpha1.ProjectLastScan{ID: scan.Name, Status: cmp.Or(scan.Status.Phase, v1alpha1.ScanPhaseRunning)}
}
