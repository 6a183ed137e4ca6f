package scan

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
)

// pagePatience is for how long after a scan's end its pages wait to be full.
const pagePatience = 10 * time.Minute

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
	end := scan.Spec.CompletedAt
	again, err := r.pager.Make(ctx, scan, end != nil && r.clock.Now().Before(end.Add(pagePatience)))
	if again {
		return ctrl.Result{RequeueAfter: ledger.PageDelay}, err
	}
	return ctrl.Result{}, err
}

func ended(phase v1alpha1.ScanPhase) bool {
	return phase == v1alpha1.ScanPhaseCompleted || phase == v1alpha1.ScanPhaseFailed
}
