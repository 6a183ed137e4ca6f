package review

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
)

// removeIssues removes a batch of the review's issues and comes back, until the API server
// says that none is left; then it lets the review go. Issues made in the meantime are caught
// by the next look.
func (r *Reconciler) removeIssues(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(s.review, v1alpha1.CleanupFinalizer) {
		s.released = true
		return ctrl.Result{}, nil
	}
	again, err := r.remover.Batch(ctx, &v1alpha1.ReviewIssue{}, s.review.Namespace, reviewField, s.review.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if again > 0 {
		r.progress(s)
		return ctrl.Result{RequeueAfter: again}, nil
	}
	s.released = true
	return ctrl.Result{}, patch.RemoveFinalizer(ctx, r.client, s.review, v1alpha1.CleanupFinalizer)
}

// progress says what is going on; the counters say how much is left.
func (r *Reconciler) progress(s *scope) {
	status := &s.review.Status
	ready := v1alpha1.FindCondition(s.before.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonDeleting {
		r.recorder.Eventf(s.review, nil, corev1.EventTypeNormal, v1alpha1.ReasonDeleting, "Remove",
			"Removing the review's issues (%d).", status.OpenIssueCount+status.ClosedIssueCount)
	}
	conditions.Set(&status.Conditions, conditions.Verdict{
		Reason: v1alpha1.ReasonDeleting, Message: "The review is being deleted; its issues are being removed.",
	}, s.review.Generation, s.now)
}
