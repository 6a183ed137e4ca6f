package uploads

import (
	"cmp"
	"context"
	"fmt"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
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
	var repositories []v1alpha1.Repository
	for _, id := range j.Named {
		repository, _, err := importer.Read[v1alpha1.Repository](ctx, c, j.Namespace, id)
		if err != nil {
			return fmt.Errorf("read repository %s: %w", id, err)
		}
		if repository != nil {
			repositories = append(repositories, *repository)
		}
	}
	if len(repositories) == 0 { // removed since the request was checked
		return nil
	}
	found, err := provision.Find(repositories, facts)
	switch {
	case err != nil:
		return &importer.RefusedError{Reason: err.Error() + ": give each its own spec.fullName or spec.url, name the one that was scanned in " +
			"versionControlProvenance of the file or in checkout_uri, or upload to /v2/repos/{id}/projects/{project_id}/scans"}
	case found != nil:
		j.Repository = found.Name
	case j.Imports == nil:
		return &importer.RefusedError{Reason: fmt.Sprintf("the file belongs to %s, but the repository %s with that full name has another URL: "+
			"correct its spec.url, or create the other repository", cmp.Or(facts.URL, facts.FullName), j.Named[0])}
	}
	return nil
}
