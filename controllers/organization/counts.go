package organization

import (
	"context"
	"fmt"
	"math"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// count counts the organization's objects. The lists come from the cache without copying, and are only read. Findings
// are summed from the repositories' counts, since there may be 100,000.
func (r *Reconciler) count(ctx context.Context, s *scope) error {
	var (
		repositories v1alpha1.RepositoryList
		projects     v1alpha1.ProjectList
		keys         v1alpha1.APIKeyList
	)
	for _, list := range []client.ObjectList{&repositories, &projects, &keys} {
		if err := r.Client.List(ctx, list, client.InNamespace(s.namespace()), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("count what is in %s: %w", s.namespace(), err)
		}
	}
	s.Status.Counts = v1alpha1.OrganizationCounts{
		Repositories: saturate(len(repositories.Items)),
		Projects:     saturate(len(projects.Items)),
		Findings:     sumFindings(repositories.Items),
		APIKeys:      saturate(len(keys.Items)),
	}
	return nil
}

func sumFindings(repositories []v1alpha1.Repository) int32 {
	sum := 0
	for i := range repositories {
		sum += int(repositories[i].Status.Counts.Findings)
	}
	return saturate(sum)
}

// saturate converts n to int32, limited to the maximum.
func saturate(n int) int32 { return int32(min(n, math.MaxInt32)) } //nolint:gosec // bounded on this line
