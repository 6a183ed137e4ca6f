package reviewissue

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// kind is what the ledger of deliveries must know of review issues.
var kind = ledger.Kind{
	Name:   "ReviewIssue",
	Prefix: webhooks.ReviewIssueEventPrefix,
	Object: &v1alpha1.ReviewIssue{},
	List:   &v1alpha1.ReviewIssueList{},
	Book: func(object client.Object) ledger.Book {
		status := &object.(*v1alpha1.ReviewIssue).Status
		return ledger.Book{Transitions: &status.Transitions, EmittedSeq: &status.EmittedSeq}
	},
	Data: func(object client.Object, t v1alpha1.Transition) any {
		return webhooks.DataOfReviewIssue(object.(*v1alpha1.ReviewIssue), t)
	},
}

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
