package reviewstate

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/transitions"
)

func history(kept []v1alpha1.Transition, emitted int64) transitions.History {
	return transitions.History{Transitions: kept, EmittedSeq: emitted}
}

// reviewChanges is the one change that there is of a review: its spec or a counter is another
// than at the last look, or this is the first. Of a review that is being deleted the counters
// run down to nothing, which is no news of the pull request.
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

// issueChanges is how the issue came to its state, where that is another than before. An issue
// that is resolved at the first look at it was never seen open, and is recorded as resolved alone.
func issueChanges(before v1alpha1.ReviewIssueState, next *v1alpha1.ReviewIssueStatus) []v1alpha1.Transition {
	if before == next.State {
		return nil
	}
	change := v1alpha1.Transition{Type: v1alpha1.TransitionOpened, From: string(before), To: string(next.State)}
	if next.State == v1alpha1.ReviewIssueResolved {
		// Who made the change is a commit, and a later one may resolve the issue anew.
		change.Type, change.By = v1alpha1.TransitionResolved, next.ResolvedBy
	}
	return []v1alpha1.Transition{change}
}
