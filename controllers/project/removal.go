package project

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/removal"
)

// observeRemoval records how many objects are left to be removed, and the count of findings with them. Both stay
// unchanged if little has changed.
func (r *Reconciler) observeRemoval(ctx context.Context, s *scope) error {
	key := client.ObjectKeyFromObject(s.Object)
	left := int(r.findings.Total(key)) + int(r.scans.Total(key))
	if !removal.Observe(&s.Status.Removal, left, s.Now) {
		return nil
	}
	return r.observeFindings(ctx, s)
}

var plan = removal.Plan{
	Parent: "project", Field: index.Project,
	Children: []removal.Child{{Kind: &v1alpha1.Finding{}, Name: "findings"}, {Kind: &v1alpha1.Scan{}, Name: "scans"}},
}

// removeChildren removes the objects that belong to the project, and then releases it.
func (r *Reconciler) removeChildren(ctx context.Context, s *scope) error {
	return removal.Children(ctx, r.Base, s, plan, func() string {
		return fmt.Sprintf("Removing the project's findings, %d of them not closed, and its scans: %d objects in all.",
			s.Status.FindingsCount, s.Status.Removal.Total)
	})
}
