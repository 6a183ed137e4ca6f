package reviewissue

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/internal/transitions"
)

// observe records what the issue's spec and its review's say, and whether the review is
// there. Nothing is retried where it is not: the watch on reviews wakes the issue when it
// comes.
func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	name := s.issue.Spec.ReviewRef.Name
	review := &v1alpha1.Review{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: s.issue.Namespace, Name: string(name)}, review, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look up review %q: %w", name, err)
	}
	spec, verdict := &review.Spec, conditions.Ready("The status is that of the spec and of the review's.")
	if err != nil {
		spec, verdict = nil, conditions.Verdict{
			Reason:  v1alpha1.ReasonReviewNotFound,
			Message: fmt.Sprintf("There is no Review %q in this namespace: create it, or delete the issue.", name),
		}
	}
	s.issue.Status = reviewstate.IssueStatus(s.issue, spec, s.now)
	s.issue.Status.EmittedSeq = lastSeq(&s.issue.Status) // no deliveries are made yet, so none are owed
	conditions.Set(&s.issue.Status.Conditions, verdict, s.issue.Generation, s.now)
	return nil
}

// announce tells people what has become of an issue that was there before.
func (r *Reconciler) announce(s *scope) {
	after := &s.issue.Status
	if s.before.State == "" || s.before.State == after.State {
		return
	}
	reason, action, note := "Reopened", "Reopen", "A commit reviewed since shows the issue again."
	if after.State == v1alpha1.ReviewIssueResolved {
		reason, action, note = "Resolved", "Resolve", "Commit "+after.ResolvedBy+" no longer shows the issue."
	}
	if after.State == v1alpha1.ReviewIssueResolved && after.ResolvedBy == "" {
		note = "A commit that the review no longer keeps resolved the issue."
	}
	r.recorder.Eventf(s.issue, nil, corev1.EventTypeNormal, reason, action, "%s", note)
}

func lastSeq(status *v1alpha1.ReviewIssueStatus) int64 {
	return transitions.History{Transitions: status.Transitions, EmittedSeq: status.EmittedSeq}.LastSeq()
}
