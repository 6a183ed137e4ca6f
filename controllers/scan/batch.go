package scan

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
)

// makePages puts what the scan has done to findings into pages, for the endpoints that ask for
// it so, once the scan has ended.
//
// That it has just ended is no reason to be quick: each finding that it has changed wakes it
// again, and together they make fewer pages.
func (r *Reconciler) makePages(ctx context.Context, scan *v1alpha1.Scan, before v1alpha1.ScanPhase) (ctrl.Result, error) {
	switch {
	case !ended(scan.Status.Phase):
		return ctrl.Result{}, nil
	case !ended(before):
		return ctrl.Result{RequeueAfter: ledger.PageDelay}, nil
	}
	return ctrl.Result{}, r.pager.Make(ctx, scan)
}

func ended(phase v1alpha1.ScanPhase) bool {
	return phase == v1alpha1.ScanPhaseCompleted || phase == v1alpha1.ScanPhaseFailed
}
