package project

import (
	"cmp"
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/scans"
)

// observeScans records the last scan and the last that succeeded. Scans are retired, so what
// was once recorded stands where no scan is left that says otherwise.
func (r *Reconciler) observeScans(ctx context.Context, s *scope) (ctrl.Result, error) {
	known, err := r.scansOf(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if last := asLastScan(scans.LastStarted(known)); last != nil {
		s.project.Status.LastScan = last
	}
	if at := scans.LastSuccess(known); at != nil {
		s.project.Status.LastScannedAt = at
	}
	return ctrl.Result{}, nil
}

// scansOf are the project's scans in the cache, not to be changed.
func (r *Reconciler) scansOf(ctx context.Context, s *scope) ([]v1alpha1.Scan, error) {
	known := &v1alpha1.ScanList{}
	if err := r.client.List(ctx, known, client.InNamespace(s.project.Namespace),
		client.MatchingFields{projectField: s.project.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the project's scans: %w", err)
	}
	return known.Items, nil
}

// asLastScan is nil for no scan. A scan that its own controller has yet to see is running as
// far as anyone knows.
func asLastScan(scan *v1alpha1.Scan) *v1alpha1.ProjectLastScan {
	if scan == nil {
		return nil
	}
	return &v1alpha1.ProjectLastScan{ID: scan.Name, Status: cmp.Or(scan.Status.Phase, v1alpha1.ScanPhaseRunning)}
}
