package reviewissue

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/policies"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/internal/transitions"
)

// observe records the status that follows from the issue's spec and its review's, the decision about it, and whether
// the review exists. If it does not, the watch on reviews enqueues the issue when it is created. It requeues for the
// end of the decision.
func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	name, review := s.Object.Spec.ReviewRef.Name, &v1alpha1.Review{}
	exists, err := reconcile.Exists(ctx, r.Client, review, s.Object.Namespace, name)
	if err != nil {
		return err
	}
	judge, err := policies.NewJudge(ctx, r.Client, s.Object.Namespace, s.Now)
	if err != nil {
		return err
	}
	verdict, spec := conditions.Ready("The status is that of the spec and of the review's."), &review.Spec
	if !exists {
		verdict, spec = conditions.NotFound(v1alpha1.ReasonReviewNotFound, "Review", name, "issue"), nil
	}
	var judged *v1alpha1.FindingVerdict
	if facts := reviewstate.Facts(s.Object, spec); findingstate.VerdictWillCount(facts, s.Now) {
		if judged, err = judge.Verdict(ctx, facts); err != nil {
			return err
		}
	}
	*s.Status = reviewstate.JudgedStatus(s.Object, spec, judged, s.Now)
	s.Judge(verdict)
	s.RequeueAfter(min(reviewstate.UntilEnd(s.Object, s.Now), reconcile.MaxWait))
	return nil
}

// auditTriage writes an audit line for each decision in spec.triage, or end of one, that is about to be recorded.
func (r *Reconciler) auditTriage(_ context.Context, s *scope) error {
	r.audit.Decisions(s.Object, s.Object.Spec.Triage.Comments,
		transitions.Of(s.Before.Transitions, s.Before.EmittedSeq), transitions.Of(s.Status.Transitions, s.Status.EmittedSeq))
	return nil
}

// announce sends an Event when an existing issue was resolved or reopened.
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
		note = "The issue was resolved by a commit that the review no longer lists."
	}
	r.Recorder.Eventf(s.Object, nil, corev1.EventTypeNormal, reason, action, "%s", note)
}
