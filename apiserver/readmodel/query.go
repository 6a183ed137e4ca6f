package readmodel

import (
	"cmp"
	"iter"
	"slices"
)

// Sort is the field that a list is sorted by. Which a list takes its query says.
type Sort string

// The fields to sort by.
const (
	SortCreatedAt       Sort = "created_at"
	SortUpdatedAt       Sort = "updated_at"
	SortLastCommittedAt Sort = "last_committed_at"
	SortPRTitle         Sort = "pr_title"
	SortPRNumber        Sort = "pr_number"
	SortPRStatus        Sort = "pr_status"
	SortPRAuthor        Sort = "pr_author"
	SortRepoName        Sort = "repo_name"
	SortOpenIssueCount  Sort = "open_issue_count"
)

// Order is the direction that a list is sorted in.
type Order string

// The directions.
const (
	OrderAsc  Order = "asc"
	OrderDesc Order = "desc"
)

// Position is a place in a sorted list: the value shown of the field sorted by, and the id.
// It need not be that of a row that is still there. A number's value has leading zeros, so
// that its bytes sort as numbers do.
type Position struct {
	Value string
	ID    string
}

// compare orders positions bytewise on the value, then on the id. Absent is empty and so first.
func (p Position) compare(other Position) int {
	return cmp.Or(cmp.Compare(p.Value, other.Value), cmp.Compare(p.ID, other.ID))
}

// Limit is how much a page holds at most.
type Limit struct {
	// Size is how many items; less than 1 counts as 1.
	Size int
	// Bytes is how much JSON they come to, a comma after each counted. The first item is there
	// however long it is. 0 is no bound.
	Bytes int
}

// Page is a part of a list.
type Page[T any] struct {
	Items []T
	// HasMore says that more items follow.
	HasMore bool
	// Next is where this page ends: the After of the next. Zero unless HasMore.
	Next Position
	// Total is how many rows match in all, on this page or not.
	Total int
}

// query is what the queries of all lists have in common.
type query struct {
	// sort is the number of the field in the layout's sorts.
	sort       int
	descending bool
	size       int
	// bytes bounds what the items take together, each with a comma; 0 is no bound.
	bytes int
	after *Position
}

// fits reports whether an item goes on a page after others that are there.
func (q query) fits(items, bytes, length int) bool {
	return items < q.size && (q.bytes == 0 || items == 0 || bytes+length <= q.bytes)
}

// query settles what a caller left open. A field that the list is not sorted by counts as none.
func (l *layout[T]) query(by Sort, order Order, limit Limit, after *Position) query {
	return query{
		sort:       max(slices.Index(l.sorts, by), 0),
		descending: order != OrderAsc,
		size:       max(limit.Size, 1),
		bytes:      limit.Bytes,
		after:      after,
	}
}

// selection is the buckets that hold what a filter matches, and perhaps more.
type selection[T any] struct {
	buckets []uint64
	// span of the list's values, if spanSort is the list's sort.
	span     span
	spanSort int
	// only leaves out what the buckets hold beside what matches; nil where that is nothing.
	only func(T) bool
	// count is how many rows match.
	count int
}

// list answers a query from an index that does not change meanwhile. length is that of an item's
// JSON. Its cost is that of the page, unless rows are left out by only, or by a span of another
// field than that sorted by.
func (x *index[T]) list(q query, s selection[T], length func(T) int) Page[T] {
	page := Page[T]{Total: s.count, Items: make([]T, 0, min(q.size, s.count))}
	if s.count == 0 {
		return page
	}
	rows := x.merge(s.buckets, q, span{})
	switch {
	case s.span.unbounded():
	case s.spanSort == q.sort:
		rows = x.merge(s.buckets, q, s.span)
	case x.isCheaperToCollect(q, s):
		rows = x.collect(q, s)
	}
	var last *row[T]
	bytes := 0
	for r := range rows {
		if !s.span.holds(r.values[s.spanSort]) || s.only != nil && !s.only(r.item) {
			continue
		}
		takes := length(r.item) + 1
		if !q.fits(len(page.Items), bytes, takes) {
			page.HasMore, page.Next = true, last.position(q.sort)
			break
		}
		page.Items = append(page.Items, r.item)
		last, bytes = r, bytes+takes
	}
	return page
}

// isCheaperToCollect says whether to look at all rows in the span rather than to walk the
// sorted rows until enough of them are in the span. With m of n rows in the span and a page of
// p, the first takes m looks and the second p*n/m, if what the list is sorted by tells nothing
// about the span. A look of the first takes about three times as long.
func (x *index[T]) isCheaperToCollect(q query, s selection[T]) bool {
	return 3*s.count*s.count <= q.size*x.byID.Len()
}

// collect looks at the rows in the span that come after the position, and yields the first of
// them in the order asked for: a page, and one that tells that there is more.
func (x *index[T]) collect(q query, s selection[T]) iter.Seq[*row[T]] {
	compare := func(a, b *row[T]) int {
		order := a.position(q.sort).compare(b.position(q.sort))
		if q.descending {
			return -order
		}
		return order
	}
	var after *row[T]
	if q.after != nil {
		after = x.pivot(q.sort, *q.after)
	}
	first := make([]*row[T], 0, min(q.size+2, s.count))
	for _, id := range s.buckets {
		for r := range x.merge([]uint64{id}, query{sort: s.spanSort}, s.span) {
			if after != nil && compare(r, after) <= 0 || s.only != nil && !s.only(r.item) {
				continue
			}
			if len(first) > q.size && compare(r, first[q.size]) > 0 {
				continue
			}
			place, _ := slices.BinarySearchFunc(first, r, compare)
			first = slices.Insert(first, place, r)
			first = first[:min(len(first), q.size+1)]
		}
	}
	return slices.Values(first)
}
