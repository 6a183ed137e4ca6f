package reviewissue

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

// observe records what the issue's spec and its review's say, and whether the review exists. Nothing is retried
// where it does not: the watch on reviews wakes the issue when it is created.
func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	name, review := s.Object.Spec.ReviewRef.Name, &v1alpha1.Review{}
	exists, err := reconcile.Exists(ctx, r.Client, review, s.Object.Namespace, name)
	switch {
	case err != nil:
		return err
	case !exists:
		*s.Status = reviewstate.IssueStatus(s.Object, nil, s.Now)
		s.Judge(conditions.NotFound(v1alpha1.ReasonReviewNotFound, "Review", name, "issue"))
	default:
		*s.Status = reviewstate.IssueStatus(s.Object, &review.Spec, s.Now)
		s.Judge(conditions.Ready("The status is that of the spec and of the review's."))
	}
	return nil
}

// announce tells people what has become of an issue that was there before.
func (r *Reconciler) announce(s *scope) {
	after := s.Status
	if s.Before.State == "" || s.Before.State == after.State {
		return
	}
	reason, action, note := "Reopened", "Reopen", "A commit reviewed since shows the issue again."
	if after.State == v1alpha1.ReviewIssueResolved {
		reason, action, note = "Resolved", "Resolve", "Commit "+after.ResolvedBy+" no longer shows the issue."
	}
	if after.State == v1alpha1.ReviewIssueResolved && after.ResolvedBy == "" {
		note = "A commit that the review no longer keeps resolved the issue."
	}
	r.Recorder.Eventf(s.Object, nil, corev1.EventTypeNormal, reason, action, "%s", note)
}
