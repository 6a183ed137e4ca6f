package uploads

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

// pick replaces the full name in the request, which repositories on several hosts may share, by the id of the
// one repository that the file belongs to. If there is no such repository, it may be created if imports may do
// so.
func pick(ctx context.Context, c *importer.Client, j *job) error {
	if len(j.Named) == 0 {
		return nil
	}
	place := j.place()
	facts, err := place.Facts(j.batches)
	if err != nil {
		return err
	}
	repositories, err := named(ctx, c, j)
	if err != nil {
		return err
	}
	found, err := provision.Find(repositories, facts)
	switch {
	case err != nil:
		return &importer.RefusedError{Reason: err.Error() + ": give each its own spec.fullName or spec.url, name the one that was scanned in " +
			"versionControlProvenance of the file or in checkout_uri, or upload to /v2/repos/{id}/projects/{project_id}/scans"}
	case found != nil:
		j.Repository = found.Name
	case j.Imports != nil:
		return nil
	case len(repositories) == 0: // removed or renamed since the request was checked
		return problem.NotFound("repository")
	default:
		return &importer.RefusedError{Reason: fmt.Sprintf("the file belongs to %s, but the repository %s with that full name has another URL: "+
			"correct its spec.url, or create the other repository", cmp.Or(facts.URL, facts.FullName), repositories[0].Name)}
	}
	return nil
}

// named returns the repositories that are stored with the full name in the request now. One that was created a moment
// ago, which the request's ids may lack, is found only if its name has the same case.
func named(ctx context.Context, c *importer.Client, j *job) ([]v1alpha1.Repository, error) {
	repositories, _, err := importer.List[v1alpha1.Repository](ctx, c, j.Namespace,
		fields.OneTermEqualSelector("spec.fullName", j.Repository))
	if err != nil {
		return nil, fmt.Errorf("list repositories: %w", err)
	}
	for _, id := range j.Named {
		if slices.ContainsFunc(repositories, func(r v1alpha1.Repository) bool { return r.Name == id }) {
			continue
		}
		repository, _, err := importer.Read[v1alpha1.Repository](ctx, c, j.Namespace, id)
		if err != nil {
			return nil, fmt.Errorf("read repository %s: %w", id, err)
		}
		if repository != nil && provision.SameName(repository.Spec.FullName, j.Repository) {
			repositories = append(repositories, *repository)
		}
	}
	return repositories, nil
}
