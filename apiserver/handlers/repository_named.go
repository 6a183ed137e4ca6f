package handlers

import (
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

// repositoriesNamed returns the ids of the organization's repositories with the full name that clients of
// GitHub's API use. It may return no ids without an error if the organization lets imports create repositories.
func (b *Backend) repositoriesNamed(organization, fullName string) ([]string, error) {
	ids := b.Model.RepositoriesNamed(organization, fullName)
	if len(ids) == 0 && (b.Model.Imports(organization) == nil || provision.CheckFullName(fullName) != nil) {
		return nil, problem.NotFound("repository")
	}
	return ids, nil
}
