package readmodel

import (
	"iter"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

// walkPage is how many findings a walk holds at a time. Of words, and of several conditions, each page is a look at
// every finding that meets the rarest of them, so that smaller pages would cost more.
const walkPage = 2000

// WalkFindings yields all findings that match a query, in its order, whatever its Limit, Shape and After. A finding
// that does not change while they are read is yielded exactly once, and none is yielded twice. The error, which is
// ErrNoOrganization, is the last that is yielded.
//
// It reads page by page, each from the snapshot that is the latest then: however slow its reader is, nothing of an
// older one is held but a page. A finding that is written meanwhile may move to where was read already, or from there,
// if they are sorted by anything but created_at: so it is left out.
func (m *Model) WalkFindings(organization string, q FindingQuery) iter.Seq2[*Item, error] {
	return m.walkFindings(organization, q, walkPage)
}

func (m *Model) walkFindings(organization string, q FindingQuery, size int) iter.Seq2[*Item, error] {
	q.Limit, q.Shape, q.After = index.Limit{Size: size}, nil, nil
	return func(yield func(*Item, error) bool) {
		moved := func(*Item) bool { return false }
		for first := true; ; first = false {
			snapshot, err := m.snapshot(organization)
			if err != nil {
				yield(nil, err)
				return
			}
			if first && (q.Sort == SortUpdatedAt || q.Sort == SortSeverity) {
				moved = writtenAfter(newestVersion(snapshot.findings))
			}
			page := listFindings(snapshot.findings, q)
			for _, item := range page.Items {
				if !moved(item) && !yield(item, nil) {
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

// newestVersion is the resource version of the state that was written last.
func newestVersion(x *index.Index[*Item]) string {
	newest := ""
	for item := range x.With(index.Everything, "") {
		if newest == "" || writtenAfter(newest)(item) {
			newest = item.resourceVersion
		}
	}
	return newest
}

// writtenAfter reports whether a finding has been written since a resource version. Those of all findings compare.
func writtenAfter(version string) func(*Item) bool {
	return func(i *Item) bool {
		order, err := resourceversion.CompareResourceVersion(i.resourceVersion, version)
		return err != nil || order > 0
	}
}

// FindingTools returns the tools that report the organization's findings, in order; "" is the one of findings without
// a tool. The error is ErrNoOrganization.
func (m *Model) FindingTools(organization string) ([]string, error) {
	snapshot, err := m.snapshot(organization)
	if err != nil {
		return nil, err
	}
	return snapshot.findings.Values(toolField), nil
}
