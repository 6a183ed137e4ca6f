package uploads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

// errRefNotImported ends provisioning for a pull request, or for a ref that is not imported.
var errRefNotImported = errors.New("the ref is not imported")

// provideTimeout bounds the preparation of an import: creating 50 projects, and waiting for the Lease of a
// process that died.
const provideTimeout = 2 * time.Minute

// provide finds the repository and the projects of an upload, and creates missing ones if the organization lets
// imports do so. Afterwards the request names the Repository. An import of a ref other than the repository's
// scan branch creates nothing: it is refused later, in its Scans.
func provide(ctx context.Context, c *importer.Client, j *job) error {
	if j.Imports == nil {
		return nil
	}
	place := j.place()
	place.Check = func(repository *v1alpha1.Repository) error { return checkOrigin(repository, j) }
	for _, pattern := range j.Imports.Projects {
		place.Patterns = append(place.Patterns, string(pattern))
	}
	ctx, cancel := context.WithTimeout(ctx, provideTimeout)
	defer cancel()
	found, err := importer.Provision(ctx, c, place, j.batches)
	if errors.Is(err, errRefNotImported) {
		return nil
	}
	j.found = found
	if err != nil {
		return err
	}
	j.Repository = found.Repository.Name
	return nil
}

// place returns the target of the import as the request names it.
func (j *job) place() importer.Place {
	return importer.Place{
		Namespace: j.Namespace, Repository: j.Repository, Project: j.Project, DryRun: j.DryRun,
		Claims: provision.Claims{URLs: []string{j.SourceRoot}, Branch: j.Ref, Commit: j.Choices.Commit},
	}
}

// checkOrigin checks a ref against the repository, which is nil if it is yet to be created.
func checkOrigin(repository *v1alpha1.Repository, j *job) error {
	switch {
	case repository != nil:
		j.Repository = repository.Name
		if j.commit != nil || j.Ref != "" && refusedRef(repository, j.Ref) != "" {
			return errRefNotImported
		}
	case j.commit != nil:
		return &importer.RefusedError{Reason: fmt.Sprintf("the repository %s does not exist yet, and only results of its branch can create it: "+
			"upload those before the results of a pull request", j.Repository)}
	case j.Ref != "" && !provision.TakesRef(nil, j.Ref):
		return problem.Refused(fmt.Errorf("the repository %s does not exist yet, and ref %q cannot become its branch: "+
			"upload the results of its branch first, with ref refs/heads/NAME in printable ASCII and at most 255 bytes. "+
			"If the branch's name has other characters, create the Repository with that name as spec.scanBranch", j.Repository, j.Ref)).In("ref")
	}
	return nil
}
