package handlers

import (
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

// repositoriesNamed returns the ids of the organization's repositories that clients of GitHub's API call by the full
// name. There may be none where the organization lets imports create one.
func (b *Backend) repositoriesNamed(organization, fullName string) ([]string, error) {
	ids := b.Model.RepositoriesNamed(organization, fullName)
	if len(ids) == 0 && (b.Model.Imports(organization) == nil || provision.CheckFullName(fullName) != nil) {
		return nil, problem.NotFound("repository")
	}
	return ids, nil
}
