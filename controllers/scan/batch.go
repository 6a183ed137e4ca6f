package scan

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// makePages puts the changes that the scan made to findings into pages, for the endpoints that subscribe to pages, once
// the scan has ended.
//
// It waits for PageDelay after the end, because each changed finding enqueues the scan again, and together they fill
// fewer pages.
func (r *Reconciler) makePages(ctx context.Context, s *scope) error {
	switch {
	case !ended(s.Status.Phase), s.Object.IsOfReview():
		return nil
	case !ended(s.Before.Phase):
		s.RequeueAfter(ledger.PageDelay)
		return nil
	}
	again, err := r.pager.Make(ctx, s.Object.Namespace, webhooks.CauseOfScan(s.Object), s.Object.Spec.CompletedAt, s.Now)
	s.RequeueAfter(again)
	if err != nil && isSettling(s.Status) {
		// Log the error only: returning it would delay the next check of the statuses, which do not depend on the pages.
		ctrl.LoggerFrom(ctx).Error(err, "the pages of a scan could not be made, and are tried again")
		return nil
	}
	return err
}

func isSettling(status *v1alpha1.ScanStatus) bool {
	settled := v1alpha1.FindCondition(status.Conditions, v1alpha1.ConditionSettled)
	return settled != nil && settled.Status != metav1.ConditionTrue
}

func ended(phase v1alpha1.ScanPhase) bool {
	return phase == v1alpha1.ScanPhaseCompleted || phase == v1alpha1.ScanPhaseFailed
}
