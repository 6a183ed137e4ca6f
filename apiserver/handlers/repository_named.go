package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

// repositoriesNamed returns the ids of the organization's repositories with the full name that clients of
// GitHub's API use. It may return no ids without an error if the organization lets imports create repositories.
// Otherwise, if the model has none, they are read from the API server: a pipeline may upload as soon as it has created
// the repository. If none of them has the name, the ids of those that cannot be read are returned, which may have it.
func (b *Backend) repositoriesNamed(ctx context.Context, request Request) ([]string, error) {
	organization, fullName := request.Organization, fullNameIn(request)
	ids := b.Model.RepositoriesNamed(organization, fullName)
	if len(ids) > 0 || b.Model.Imports(organization) != nil && provision.CheckFullName(fullName) == nil {
		return ids, nil
	}
	ids, unreadable, err := b.Cluster.RepositoriesNamed(ctx, request.Namespace, fullName)
	if err == nil && len(ids) == 0 {
		ids = unreadable
	}
	if err == nil && len(ids) == 0 {
		err = problem.NotFound("repository")
	}
	return ids, err
}

// fullNameIn returns the full name of a repository in the path of GitHub's API.
func fullNameIn(request Request) string {
	return request.Path.Get("owner") + "/" + request.Path.Get("repo")
}
