package review

import (
	"context"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

// observe records the counters, the time of the last review, and when anything last changed.
func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	issues := &v1alpha1.ReviewIssueList{}
	if err := index.List(ctx, r.Client, issues, s.Object.Namespace, index.Review, s.Object.Name); err != nil {
		return err
	}
	var counts reviewstate.Counts
	for i := range issues.Items {
		counts.AddIssue(&issues.Items[i], s.Object.Spec.ReviewedCommits)
	}
	*s.Status = reviewstate.ReviewStatus(s.Object, counts, s.Now)
	return nil
}

// emptyingRecheck is how often a review is reconciled while retention removes its issues, which may end at any time.
const emptyingRecheck = 10 * time.Second

// leaveEmptying leaves the status of a review whose issues retention is removing: the counters drop, which is not a
// change of the pull request.
func (r *Reconciler) leaveEmptying(_ context.Context, s *scope) error {
	if r.emptying.Has(s.Object) {
		s.LeaveStatus()
		s.Stop()
		s.RequeueAfter(emptyingRecheck)
	}
	return nil
}

func (r *Reconciler) observeRepository(ctx context.Context, s *scope) error {
	return s.JudgeByRepository(ctx, r.Client, s.Object.Spec.RepositoryRef.Name, "review",
		"The status is that of the spec and of the issues.")
}
