package readmodel

import (
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/scanimport/provision"
)

// repositoryItem is a repository as it is shown.
type repositoryItem struct {
	id                                    string
	createdAt, updatedAt, lastCommittedAt string
	// fullName in the form in which providers compare it.
	fullName string
	json     content.Bytes
	// projects are the parts of json that show a project, and joined is what these show of the repository.
	projects map[*v1alpha1.Project][]byte
	joined   *render.Repository
}

// Repository returns the JSON of an organization's repository with its projects. It takes no lock.
func (m *Model) Repository(organization, id string) ([]byte, bool) {
	item, ok := m.shown(organization).repositories.Get(id)
	if !ok {
		return nil, false
	}
	return item.json, true
}

// repositoryLayout defines how repositories are indexed.
var repositoryLayout = &index.Layout[*repositoryItem]{
	Sorts: []index.Sort{SortCreatedAt, SortUpdatedAt, SortLastCommittedAt},
	Values: func(i *repositoryItem) []string {
		return []string{i.createdAt, i.updatedAt, i.lastCommittedAt}
	},
	Keys: func(i *repositoryItem) []index.Key {
		return []index.Key{{Field: index.Everything}, {Field: fullNameField, Value: i.fullName}}
	},
	Held: []int{0, 1, 1},
}

// fullNameField indexes repositories by their full name.
const fullNameField = index.Everything + 1

// RepositoriesNamed returns the ids of an organization's repositories with that full name, sorted. Names are
// compared as providers do, ignoring the case of ASCII letters. It takes no lock.
func (m *Model) RepositoriesNamed(organization, fullName string) (ids []string) {
	if fullName == "" {
		return nil
	}
	for i := range m.shown(organization).repositories.With(fullNameField, provision.Fold(fullName)) {
		ids = append(ids, i.id)
	}
	slices.Sort(ids)
	return ids
}

// ListRepositories returns a page of an organization's repositories, sorted by created_at, updated_at or
// last_committed_at; empty means created_at. A repository without a last commit comes first in ascending order and last
// in descending order. An item is the repository's JSON with its projects, ready to be sent. ListRepositories takes no
// lock. The error is ErrNoOrganization.
func (m *Model) ListRepositories(organization string, r index.Request) (index.Page[content.Part], error) {
	snapshot, err := m.snapshot(organization)
	if err != nil {
		return index.Page[content.Part]{}, err
	}
	x := snapshot.repositories
	return listJSON(x, repositoryLayout.Query(r), x.Pick(index.Everything, "", index.AnyFacet),
		func(i *repositoryItem) content.Part { return &i.json }), nil
}

// listJSON answers a query; an item is the JSON that shape returns, ready to be sent.
func listJSON[T any](x *index.Index[T], q index.Query, s index.Selection[T],
	shape func(T) content.Part) index.Page[content.Part] {
	return index.Map(x.List(q, s, func(item T) int { return shape(item).Len() }), shape)
}
