package reviewstate

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// reviewChanges returns an updated transition if the review's spec or a counter has changed since the last reconcile,
// or if this is the first. The counters of a review that is being deleted drop to 0, which is not a change of the pull
// request.
func reviewChanges(review *v1alpha1.Review, counts Counts) []v1alpha1.Transition {
	before := &review.Status
	same := before.UpdatedAt != nil && before.ObservedGeneration == review.Generation && CountsOf(before) == counts
	if same || !review.DeletionTimestamp.IsZero() {
		return nil
	}
	var from string
	if n := len(before.Transitions); n > 0 {
		from = before.Transitions[n-1].To
	}
	return []v1alpha1.Transition{{Type: v1alpha1.TransitionUpdated, From: from, To: string(review.Spec.PRStatus)}}
}

// issueChanges returns the transition to the issue's state, if that has changed. An issue that is
// resolved when first observed was never seen open, and only gets a resolved transition.
func issueChanges(before v1alpha1.ReviewIssueState, next *v1alpha1.ReviewIssueStatus) []v1alpha1.Transition {
	if before == next.State {
		return nil
	}
	change := v1alpha1.Transition{Type: v1alpha1.TransitionOpened, From: string(before), To: string(next.State)}
	if next.State == v1alpha1.ReviewIssueResolved {
		// The author of the change is a commit. A later commit may resolve the issue again.
		change.Type, change.By = v1alpha1.TransitionResolved, next.ResolvedBy
	}
	return []v1alpha1.Transition{change}
}
