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

// findRepository replaces the full name in the request, which repositories on several hosts may share, by the id of the
// one repository that the file belongs to. If there is no such repository, it may be created if imports may do
// so.
func findRepository(ctx context.Context, c *importer.Client, j *job) error {
	if len(j.Named) == 0 {
		return nil
	}
	place := j.place()
	facts := place.Facts(j.batches)
	// The ids in the request may lack a repository that was created or got the name a moment ago. All are listed,
	// because the API server's selectors compare the case of letters.
	repositories, unreadable, err := importer.List[v1alpha1.Repository](ctx, c, j.Namespace, fields.Everything())
	if err != nil {
		return fmt.Errorf("list repositories: %w", err)
	}
	found, err := provision.Find(repositories, facts)
	switch {
	case err != nil:
		return &importer.RefusedError{Reason: err.Error() + ": give each its own spec.fullName or spec.url, name the one that was scanned in " +
			"versionControlProvenance of the file or in checkout_uri, or upload to " +
			"/v2/repos/{id}/projects/{project_id}/scans; if they are one repository, keep the one that has the " +
			"decisions, and proceed as in \"If that has happened\" of docs/kinds/repository.md"}
	case found != nil:
		j.Repository = found.Name
	case j.Imports == nil:
		return notFound(j.Repository, facts, repositories, unreadable)
	}
	return nil
}

// notFound returns why none of the repositories is the one with the full name that the facts describe.
func notFound(fullName string, facts provision.Facts, repositories []v1alpha1.Repository, unreadable []string) error {
	elsewhere := slices.IndexFunc(repositories, func(r v1alpha1.Repository) bool {
		return provision.SameName(r.Spec.FullName, fullName)
	})
	if err := importer.RefuseUnreadable("repository", unreadable); err != nil {
		return err
	}
	if elsewhere < 0 { // removed or renamed since the request was checked
		return problem.NotFound("repository")
	}
	return &importer.RefusedError{Reason: fmt.Sprintf("the file belongs to %s, but the repository %s with that full name "+
		"has another URL: set its spec.url to the address of its page, set its spec.cloneURL to the URL that git "+
		"clones, such as ssh://git@HOST/OWNER/NAME.git, or create the other repository",
		cmp.Or(facts.URL, facts.FullName), repositories[elsewhere].Name)}
}
