package readmodel

import "github.com/appsec-dev/findings-operator/apiserver/content"

// repositoryItem is a repository as it is shown.
type repositoryItem struct {
	createdAt, updatedAt, lastCommittedAt string
	json                                  content.Bytes
}

func (i *repositoryItem) length() int { return i.json.Len() }

// repositoryLayout is how repositories are listed.
var repositoryLayout = &layout[*repositoryItem]{
	sorts: []Sort{SortCreatedAt, SortUpdatedAt, SortLastCommittedAt},
	values: func(i *repositoryItem) []string {
		return []string{i.createdAt, i.updatedAt, i.lastCommittedAt}
	},
	keys: func(*repositoryItem) []bucketKey { return []bucketKey{{field: everything}} },
}

// RepositoryQuery asks for a page of an organization's repositories.
type RepositoryQuery struct {
	// Sort is the field to sort by, created_at, updated_at or last_committed_at; empty means
	// created_at. A repository without a last commit comes before all others.
	Sort Sort
	// Order is the direction; empty means desc.
	Order Order
	// Limit is how much the page holds at most.
	Limit Limit
	// After is where the page before ended; nil for the first page.
	After *Position
}

// ListRepositories answers a query from the organization's snapshot; an item is the
// repository's JSON with its projects, ready to be sent. It takes no lock. The error is
// ErrNoOrganization.
func (m *Model) ListRepositories(organization string, q RepositoryQuery) (Page[content.Part], error) {
	snapshot, err := m.snapshot(organization)
	if err != nil {
		return Page[content.Part]{}, err
	}
	x := snapshot.repositories
	page := x.list(repositoryLayout.query(q.Sort, q.Order, q.Limit, q.After), x.pick(everything, "", anyFacet), (*repositoryItem).length)
	return ready(page, func(i *repositoryItem) content.Part { return &i.json }), nil
}

// ready turns a page of items into one of their JSON.
func ready[T any](page Page[T], shape func(T) content.Part) Page[content.Part] {
	out := Page[content.Part]{
		Items:   make([]content.Part, len(page.Items)),
		HasMore: page.HasMore, Next: page.Next, Total: page.Total,
	}
	for i, item := range page.Items {
		out.Items[i] = shape(item)
	}
	return out
}
