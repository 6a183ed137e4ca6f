package review

import (
	"context"
	"fmt"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/removal"
)

var plan = removal.Plan{
	Parent: "review", Field: index.Review,
	Children: []removal.Child{{Kind: &v1alpha1.ReviewIssue{}, Name: "issues"}},
}

// removeIssues removes the review's issues, and then releases it.
func (r *Reconciler) removeIssues(ctx context.Context, s *scope) error {
	return removal.Children(ctx, r.Base, s, plan, func() string {
		return fmt.Sprintf("Removing the review's issues (%d).", s.Status.OpenIssueCount+s.Status.ClosedIssueCount)
	})
}
