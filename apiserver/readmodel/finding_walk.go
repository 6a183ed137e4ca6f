package readmodel

import (
	"iter"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

// walkPage is how many findings a walk holds at a time. With words, or several conditions, each page examines
// every finding that meets the most selective condition, so smaller pages would cost more.
const walkPage = 2000

// WalkFindings yields all findings that match a query, in its order, ignoring its Limit, Shape and After. A finding
// that does not change during the walk is yielded exactly once, and none is yielded twice. An error, which is
// ErrNoOrganization, is yielded last.
//
// It reads page by page, each from the latest snapshot: however slow its caller is, it keeps no more than a
// page of an older snapshot. Unless the query is sorted by created_at, a finding that changes may move into the part
// that was already read, and is missed, or out of it: so the walk remembers the ids that it has yielded.
func (m *Model) WalkFindings(organization string, q FindingQuery) iter.Seq2[*Item, error] {
	return m.walkFindings(organization, q, walkPage)
}

func (m *Model) walkFindings(organization string, q FindingQuery, size int) iter.Seq2[*Item, error] {
	q.Limit, q.Shape, q.After = index.Limit{Size: size}, nil, nil
	moving := q.Sort == SortUpdatedAt || q.Sort == SortSeverity
	return func(yield func(*Item, error) bool) {
		yielded := sets.Set[string]{}
		for {
			snapshot, err := m.snapshot(organization)
			if err != nil {
				yield(nil, err)
				return
			}
			page := listFindings(snapshot.findings, q)
			for _, item := range page.Items {
				if moving {
					if yielded.Has(item.ID) {
						continue
					}
					yielded.Insert(item.ID)
				}
				if !yield(item, nil) {
					return
				}
			}
			if !page.HasMore {
				return
			}
			q.After = &page.Next
		}
	}
}

// FindingTools returns the tools that report the organization's findings, sorted; "" stands for findings
// without a tool. The error is ErrNoOrganization.
func (m *Model) FindingTools(organization string) ([]string, error) {
	snapshot, err := m.snapshot(organization)
	if err != nil {
		return nil, err
	}
	return snapshot.findings.Values(toolField), nil
}
