package review

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

func reviewOfIssue(issue *v1alpha1.ReviewIssue) v1alpha1.ResourceName {
	return issue.Spec.ReviewRef.Name
}

func repositoryOfReview(review *v1alpha1.Review) v1alpha1.ResourceName {
	return review.Spec.RepositoryRef.Name
}

// otherCommits reports whether other commits are reviewed.
func otherCommits(before, after *v1alpha1.Review) bool {
	return after.DeletionTimestamp.IsZero() && before.UID == after.UID &&
		!slices.EqualFunc(before.Spec.ReviewedCommits, after.Spec.ReviewedCommits,
			func(a, b v1alpha1.ReviewedCommit) bool { return a.SHA == b.SHA })
}

// worthReconciling ignores our own status writes, except when a review begins to wait for its repository, and changes
// of the reviewed commits, which another watch handles.
var worthReconciling = predicate.And(
	watch.SpecOr(func(before, after *v1alpha1.Review) bool {
		return watch.FinalizersChanged(before, after) ||
			watch.BeginsToWait(before.Status.Conditions, after.Status.Conditions, v1alpha1.ReasonRepositoryNotFound)
	}),
	watch.Updates(func(before, after *v1alpha1.Review) bool { return !otherCommits(before, after) }),
)

// countsOtherwise ignores status updates of issues that do not change the decision.
var countsOtherwise = watch.SpecOr(func(before, after *v1alpha1.ReviewIssue) bool {
	return reviewstate.Decided(before) != reviewstate.Decided(after)
})
