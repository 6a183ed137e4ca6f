package review

import (
	"context"

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

func (r *Reconciler) observeRepository(ctx context.Context, s *scope) error {
	return s.JudgeByRepository(ctx, r.Client, s.Object.Spec.RepositoryRef.Name, "review",
		"The status is that of the spec and of the issues.")
}
