package repository

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/removal"
	"github.com/appsec-dev/findings-operator/controllers/internal/tally"
)

// observeRemoval records how many objects are left to be removed, and the counts with them. Both stay unchanged if
// little has changed.
func (r *Reconciler) observeRemoval(ctx context.Context, s *scope) error {
	key, left := client.ObjectKeyFromObject(s.Object), 0
	for _, children := range []*tally.Tally{r.projects, r.findings, r.scans, r.reviews} {
		left += int(children.Total(key))
	}
	if !removal.Observe(&s.Status.Removal, left, s.Now) {
		return nil
	}
	return r.observeCounts(ctx, s)
}

// plan removes projects first: deleting a project removes its findings and scans, as deleting a review removes its
// issues. The rest are objects that name the repository but no existing project.
var plan = removal.Plan{
	Parent: "repository", Field: index.Repository,
	Children: []removal.Child{
		{Kind: &v1alpha1.Project{}, Name: "projects"},
		{Kind: &v1alpha1.Finding{}, Name: "findings"},
		{Kind: &v1alpha1.Scan{}, Name: "scans"},
		{Kind: &v1alpha1.Review{}, Name: "reviews"},
	},
}

// removeChildren removes the objects that belong to the repository, and then releases it.
func (r *Reconciler) removeChildren(ctx context.Context, s *scope) error {
	return removal.Children(ctx, r.Base, s, plan, func() string {
		return fmt.Sprintf("Removing the repository's projects (%d), findings (%d of them not closed), scans and reviews: %d objects in all.",
			s.Status.Projects, s.Status.Counts.Findings, s.Status.Removal.Total)
	})
}
