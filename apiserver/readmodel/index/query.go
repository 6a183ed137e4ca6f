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

// Position is a place in a sorted list: the value of the field sorted by, and the id. It need not be that of an
// existing row. Values of numbers have leading zeros, so that their byte order is the numeric order.
type Position struct {
	Value string
	ID    string
}

// compare orders positions by the bytes of the value, then of the id. A missing value is empty and comes first.
func (p Position) compare(other Position) int {
	return cmp.Or(cmp.Compare(p.Value, other.Value), cmp.Compare(p.ID, other.ID))
}

// Limit bounds a page.
type Limit struct {
	// Size is the maximum number of items; less than 1 counts as 1.
	Size int
	// Bytes bounds the total length of the items' JSON, with a comma after each. The first item is always
	// included. 0 is no bound.
	Bytes int
}

// Page is a part of a list.
type Page[T any] struct {
	Items []T
	// HasMore reports whether more items follow.
	HasMore bool
	// Next is where this page ends: the After of the next page. Zero unless HasMore.
	Next Position
	// Total is how many rows match, on all pages.
	Total int
}

// Map returns the page with what shape returns for each item.
func Map[T, S any](page Page[T], shape func(T) S) Page[S] {
	items := make([]S, len(page.Items))
	for i, item := range page.Items {
		items[i] = shape(item)
	}
	return Page[S]{Items: items, HasMore: page.HasMore, Next: page.Next, Total: page.Total}
}

// Request asks for a page of a list.
type Request struct {
	// Sort is the field to sort by; if it is empty or unknown, the list's first one.
	Sort Sort
	// Order is the direction; empty means desc.
	Order Order
	// Limit bounds the page.
	Limit Limit
	// After is where the previous page ended; nil for the first page.
	After *Position
}

// Query is a Request for an index of the layout that made it.
type Query struct {
	// Sort is the index of the field in the layout's Sorts.
	Sort       int
	descending bool
	size       int
	// bytes bounds the total length of the items, each with a comma; 0 is no bound.
	bytes int
	after *Position
}

// compare orders positions in the query's direction.
func (q Query) compare(a, b Position) int {
	if q.descending {
		return b.compare(a)
	}
	return a.compare(b)
}

// fits reports whether a page with this many items and bytes has room for another item.
func (q Query) fits(items, bytes, length int) bool {
	return items < q.size && (q.bytes == 0 || items == 0 || bytes+length <= q.bytes)
}

// Query returns the query for a page of an index with this layout.
func (l *Layout[T]) Query(r Request) Query { return r.query(max(slices.Index(l.Sorts, r.Sort), 0)) }

func (r Request) query(sort int) Query {
	return Query{
		Sort:       sort,
		descending: r.Order != OrderAsc,
		size:       max(r.Limit.Size, 1),
		bytes:      r.Limit.Bytes,
		after:      r.After,
	}
}

// List answers a query from an index that does not change meanwhile. length returns the length of an item's
// JSON. The cost is proportional to the page, unless the selection examines each row, or has a span of another
// field than the one sorted by: then up to all rows of its buckets within the span are examined.
func (x *Index[T]) List(q Query, s Selection[T], length func(T) int) Page[T] {
	switch {
	case s.Looks():
		first, count := x.collect(q, s)
		return pageOf(q, slices.Values(first), count, length)
	case s.Count == 0:
		return pageOf[T](q, nil, 0, length)
	case s.isOrderedBy(q.Sort):
		return pageOf(q, x.merge(s.buckets, q, s.span), s.Count, length)
	case x.isCheaperToCollect(q, s):
		first, _ := x.collect(q, s)
		return pageOf(q, slices.Values(first), s.Count, length)
	case q.Sort > s.last:
		return pageOf(q, x.elsewhere(q, s), s.Count, length)
	default:
		return pageOf(q, within(x.merge(s.buckets, q, Span{}), s), s.Count, length)
	}
}

// elsewhere yields the rows of buckets that the tree of the list's sort does not have.
func (x *Index[T]) elsewhere(q Query, s Selection[T]) iter.Seq[*row[T]] {
	return func(yield func(*row[T]) bool) {
		for r := range within(x.merge(s.among, q, Span{}), s) {
			if s.Meets(r.item) && !yield(r) {
				return
			}
		}
	}
}

// within leaves out the rows outside of the selection's span.
func within[T any](rows iter.Seq[*row[T]], s Selection[T]) iter.Seq[*row[T]] {
	return func(yield func(*row[T]) bool) {
		for r := range rows {
			if s.span.Holds(r.values[s.spanSort]) && !yield(r) {
				return
			}
		}
	}
}

// pageOf returns a page of the rows; count is how many match. Each loop reads one part of every row, so that the
// processor fetches many rows at a time: with many findings, a page mostly waits for memory.
func pageOf[T any](q Query, rows iter.Seq[*row[T]], count int, length func(T) int) Page[T] {
	page := Page[T]{Total: count, Items: []T{}}
	if count == 0 {
		return page
	}
	first := firstOf(rows, min(q.size, count)+1)
	page.Items = make([]T, len(first))
	for i, r := range first {
		page.Items[i] = r.item
	}
	bytes := 0
	for i, item := range page.Items {
		takes := length(item) + 1
		if !q.fits(i, bytes, takes) {
			page.Items, page.HasMore, page.Next = page.Items[:i], true, first[i-1].position(q.Sort)
			break
		}
		bytes += takes
	}
	return page
}

// firstOf returns the first rows, at most n.
func firstOf[T any](rows iter.Seq[*row[T]], n int) []*row[T] {
	first := make([]*row[T], 0, n)
	for r := range rows {
		if first = append(first, r); len(first) == n {
			break
		}
	}
	return first
}

// isCheaperToCollect reports whether to examine all rows in the span rather than to walk the sorted rows until
// enough of them are in the span. With m of n rows in the span and a page of p, the former examines m rows and
// the latter p*n/m, if the sort order and the span are independent. Each row takes the former about three times
// as long.
func (x *Index[T]) isCheaperToCollect(q Query, s Selection[T]) bool {
	return 3*s.Count*s.Count <= q.size*x.byID.Len()
}

// collect examines all rows of a selection within its span. It counts the matches, and returns the first of
// them in the requested order after the position: a page, plus one row if another page follows.
func (x *Index[T]) collect(q Query, s Selection[T]) (first []*row[T], count int) {
	compare := func(a, b *row[T]) int { return q.compare(a.position(q.Sort), b.position(q.Sort)) }
	var after *row[T]
	if q.after != nil {
		after = x.pivot(q.Sort, *q.after)
	}
	walk := Query{Sort: q.Sort, descending: q.descending} // the same order, so that the first matches stay the first
	if !s.isOrderedBy(q.Sort) {
		walk = Query{Sort: s.spanSort}
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

// lookahead gathers rows, has all of them fetched from memory at the same time, and then visits each. This takes a
// quarter of the time of a search that waits for two fetches per row, one by one.
type lookahead[T any] struct {
	visit func(*row[T])
	// text reports whether the rows' texts are needed.
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

// eachWithin visits the rows of one bucket within a span of the values of a sort, in the requested order. It
// reads rows only to check the span: a walk over all of them would mostly wait for memory.
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
