package readmodel

import (
	"iter"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

// walkPage is how many findings a walk holds at a time. With words, or several conditions, each page examines
// every finding that meets the most selective condition, so smaller pages would cost more.
const walkPage = 2000

// FindingWalk reads the findings of an organization, in one or several passes that agree about which findings have
// moved meanwhile. It is not safe for concurrent use.
type FindingWalk struct {
	model        *Model
	organization string
	page         int
	// lastMove is the number of the last move before the first pass that needs it; 0 until then.
	lastMove uint64
}

// WalkFindings returns a walk over the findings of an organization.
func (m *Model) WalkFindings(organization string) *FindingWalk {
	return &FindingWalk{model: m, organization: organization, page: walkPage}
}

// All yields all findings that match a query, in its order, ignoring its Limit, Shape and After. A
// finding that does not change during the walk is yielded exactly once, and no pass yields a finding twice. Passes with
// different filters may both yield a finding that has changed between them. An error, which is ErrNoOrganization, is
// yielded last.
//
// It reads page by page, each from the latest snapshot: however slow its caller is, it keeps no more than a
// page of an older snapshot. Unless the query is sorted by created_at, a finding that moves meanwhile may move into
// or out of the part that was already read, so it is left out.
func (w *FindingWalk) All(q FindingQuery) iter.Seq2[*Item, error] {
	q.Limit, q.Shape, q.After = index.Limit{Size: w.page}, nil, nil
	return func(yield func(*Item, error) bool) {
		moving := q.Sort == SortUpdatedAt || q.Sort == SortSeverity
		for first := true; ; first = false {
			snapshot, err := w.model.snapshot(w.organization)
			if err != nil {
				yield(nil, err)
				return
			}
			if first && moving && w.lastMove == 0 {
				w.lastMove = snapshot.lastMove
			}
			page := listFindings(snapshot.findings, q)
			for _, item := range page.Items {
				if moving && item.moved > w.lastMove {
					continue
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
