package index

import (
	"cmp"
	"iter"
	"slices"

	"github.com/appsec-dev/findings-operator/internal/findingquery"
)

// Sort is a field that a list is sorted by.
type Sort string

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

// Query asks for a page of a list.
type Query struct {
	// Sort is the number of the field in the layout's Sorts.
	Sort       int
	descending bool
	size       int
	// bytes bounds what the items take together, each with a comma; 0 is no bound.
	bytes int
	after *Position
}

// fits reports whether an item goes on a page after others that are there.
func (q Query) fits(items, bytes, length int) bool {
	return items < q.size && (q.bytes == 0 || items == 0 || bytes+length <= q.bytes)
}

// Query returns a query. A field that the list is not sorted by counts as the default one, and so does no order.
func (l *Layout[T]) Query(by Sort, order Order, limit Limit, after *Position) Query {
	return Query{
		Sort:       max(slices.Index(l.Sorts, by), 0),
		descending: order != OrderAsc,
		size:       max(limit.Size, 1),
		bytes:      limit.Bytes,
		after:      after,
	}
}

// List answers a query from an index that does not change meanwhile. length is that of an item's
// JSON. Its cost is that of the page, unless each row of the selection is looked at: then it is that of a look at
// all that the buckets hold within the span; or by a span of another field than that sorted by.
func (x *Index[T]) List(q Query, s Selection[T], length func(T) int) Page[T] {
	if s.Looks() {
		rows, count := x.collect(q, s)
		return pageOf(q, slices.Values(rows), count, length)
	}
	if s.Count == 0 {
		return pageOf[T](q, nil, 0, length)
	}
	if q.Sort > s.last {
		return pageOf(q, x.elsewhere(q, s), s.Count, length)
	}
	rows := x.merge(s.buckets, q, Span{})
	switch {
	case s.span.Unbounded():
	case s.spanSort == q.Sort:
		rows = x.merge(s.buckets, q, s.span)
	case x.isCheaperToCollect(q, s):
		first, _ := x.collect(q, s)
		rows = slices.Values(first)
	default:
		rows = within(rows, s)
	}
	return pageOf(q, rows, s.Count, length)
}

// elsewhere yields the rows of buckets that the tree of the list's sort does not have.
func (x *Index[T]) elsewhere(q Query, s Selection[T]) iter.Seq[*row[T]] {
	if x.isCheaperToCollect(q, s) {
		first, _ := x.collect(q, s)
		return slices.Values(first)
	}
	return func(yield func(*row[T]) bool) {
		for r := range within(x.merge(s.among, q, Span{}), s) {
			if s.Meets(r.item) && !yield(r) {
				return
			}
		}
	}
}

// within leaves out the rows that are not in the selection's Span.
func within[T any](rows iter.Seq[*row[T]], s Selection[T]) iter.Seq[*row[T]] {
	return func(yield func(*row[T]) bool) {
		for r := range rows {
			if s.span.Holds(r.values[s.spanSort]) && !yield(r) {
				return
			}
		}
	}
}

// pageOf takes as many of the rows as a page holds, of count that match.
func pageOf[T any](q Query, rows iter.Seq[*row[T]], count int, length func(T) int) Page[T] {
	page := Page[T]{Total: count, Items: make([]T, 0, min(q.size, count))}
	if count == 0 {
		return page
	}
	var last *row[T]
	bytes := 0
	for r := range rows {
		takes := length(r.item) + 1
		if !q.fits(len(page.Items), bytes, takes) {
			page.HasMore, page.Next = true, last.position(q.Sort)
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
func (x *Index[T]) isCheaperToCollect(q Query, s Selection[T]) bool {
	return 3*s.Count*s.Count <= q.size*x.byID.Len()
}

// collect looks at all rows of a selection, in its span. It counts them, and returns the first of them in the order
// asked for that come after the position: a page, and one more row where another page follows.
func (x *Index[T]) collect(q Query, s Selection[T]) (first []*row[T], count int) {
	compare := func(a, b *row[T]) int {
		order := a.position(q.Sort).compare(b.position(q.Sort))
		if q.descending {
			return -order
		}
		return order
	}
	var after *row[T]
	if q.after != nil {
		after = x.pivot(q.Sort, *q.after)
	}
	walk := Query{Sort: q.Sort, descending: q.descending} // so that what comes first stays first
	if q.Sort > s.last || !s.span.Unbounded() && s.spanSort != q.Sort {
		walk = Query{Sort: s.spanSort}
	}
	if walk.Sort == q.Sort {
		walk.descending = q.descending
	}
	look := func(r *row[T]) {
		if !findingquery.HasWords(r.text, s.Words) || s.only != nil && !s.only(r.item) {
			return
		}
		count++
		if after != nil && compare(r, after) <= 0 || len(first) > q.size && compare(r, first[q.size]) > 0 {
			return
		}
		place, _ := slices.BinarySearchFunc(first, r, compare)
		first = slices.Insert(first, place, r)
		first = first[:min(len(first), q.size+1)]
	}
	ahead := lookahead[T]{visit: look, text: len(s.Words) > 0}
	for _, id := range s.buckets {
		x.eachWithin(id, walk, s.span, ahead.add)
	}
	ahead.flush()
	return first, count
}

// lookahead gathers some rows, has them all fetched from memory at the same time, and then looks at each. One by one,
// a search would wait for two fetches a row, and that is most of what it does: this takes a quarter of the time.
type lookahead[T any] struct {
	visit func(*row[T])
	// text says that the rows' texts are looked at.
	text    bool
	rows    [64]*row[T]
	count   int
	fetched int
}

func (l *lookahead[T]) add(r *row[T]) {
	l.rows[l.count] = r
	if l.count++; l.count == len(l.rows) {
		l.flush()
	}
}

func (l *lookahead[T]) flush() {
	rows := l.rows[:l.count]
	l.count = 0
	if l.text {
		for _, r := range rows {
			l.fetched += len(r.text)
		}
		for _, r := range rows {
			if r.text != "" {
				l.fetched += int(r.text[0]) + int(r.text[len(r.text)-1])
			}
		}
	}
	for _, r := range rows {
		l.visit(r)
	}
}

// eachWithin visits the rows of one bucket, in a span of the values of a sort, in the order asked for. It touches no
// row but to bound the span: a walk over all of them is mostly spent waiting for memory.
func (x *Index[T]) eachWithin(bucket uint64, walk Query, within Span, visit func(*row[T])) {
	tree := x.sorted[walk.Sort]
	if !walk.descending {
		tree.Ascend(entry[T]{bucket: bucket, row: x.pivot(walk.Sort, Position{Value: within.From})}, func(e entry[T]) bool {
			if e.bucket != bucket || within.To != "" && e.row.values[walk.Sort] >= within.To {
				return false
			}
			visit(e.row)
			return true
		})
		return
	}
	last := entry[T]{bucket: bucket, row: x.pivot(walk.Sort, Position{Value: within.To})}
	if within.To == "" {
		last.bucket++
	}
	tree.Descend(last, func(e entry[T]) bool {
		if e.bucket != bucket || within.From != "" && e.row.values[walk.Sort] < within.From {
			return false
		}
		visit(e.row)
		return true
	})
}
