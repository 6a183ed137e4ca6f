package index

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"unique"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// book is an item of a toy list.
type book struct {
	id, title, at, status string
	length                int
}

// status is the field that books are indexed by, with facets of it.
const status = Everything + 1

// Indexes of the sorts of books.
const (
	byTitle = iota
	byTime
)

var books = &Layout[*book]{
	Sorts:  []Sort{byTitle: "title", byTime: "at"},
	Values: func(b *book) []string { return []string{b.title, b.at} },
	Keys: func(b *book) []Key {
		return []Key{{Field: Everything}, {Field: status, Facet: unique.Make(Facet{b.status})}}
	},
}

func put(x *Index[*book], b *book) { x.Put(b.id, b) }

func drawOrder(t *rapid.T) Order {
	return rapid.SampledFrom([]Order{OrderAsc, OrderDesc}).Draw(t, "order")
}

func drawTitle(t *rapid.T) string { return rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "title") }

func drawTime(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "at")) }

// Collecting, walking, and starting and ending at the bounds of the span all give the same page.
func TestBothWaysThroughASpanAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := New(books)
		for i := range rapid.IntRange(1, 60).Draw(t, "rows") {
			put(x, &book{id: fmt.Sprintf("r%02d", i), title: drawTitle(t), at: drawTime(t),
				status: rapid.SampledFrom([]string{"open", "closed"}).Draw(t, "status")})
		}
		s := x.Pick(Everything, "", AnyFacet)
		if rapid.Bool().Draw(t, "filtered") {
			s = x.Pick(status, "", func(has Facet) bool { return has[0] == "open" })
		}
		span := Span{From: rapid.SampledFrom([]string{"", drawTime(t)}).Draw(t, "from"), To: rapid.SampledFrom([]string{"", drawTime(t)}).Draw(t, "to")}
		x.Within(&s, byTime, span)
		q := books.Query(Request{Order: drawOrder(t), Limit: Limit{Size: 5}})
		if rapid.Bool().Draw(t, "not the first page") {
			q.after = &Position{Value: drawTitle(t), ID: fmt.Sprintf("r%02d", rapid.IntRange(0, 60).Draw(t, "id"))}
		}
		first, count := x.collect(q, s)
		if count != s.Count {
			t.Fatalf("collected of %d, want of %d", count, s.Count)
		}
		walked := walk(x, q, s, Span{})
		if want := walked[:min(len(walked), q.size+1)]; !slices.Equal(first, want) {
			t.Fatalf("collected %v, want %v", first, want)
		}
		if q.after == nil && s.Count != len(walked) {
			t.Fatalf("counted %d of %d", s.Count, len(walked))
		}

		q.Sort = byTime
		if q.after != nil {
			q.after.Value = drawTime(t)
		}
		if bounded, filtered := walk(x, q, s, span), walk(x, q, s, Span{}); !slices.Equal(bounded, filtered) {
			t.Fatalf("by time: bounded %v, want %v", bounded, filtered)
		}
	})
}

// walk returns the rows of a selection within its span, walking only between the bounds.
func walk(x *Index[*book], q Query, s Selection[*book], bounds Span) (rows []*row[*book]) {
	for r := range x.merge(s.buckets, q, bounds) {
		if s.span.Holds(r.item.at) {
			rows = append(rows, r)
		}
	}
	return rows
}

// A page contains rows as long as they fit, and at least one, and the next page continues where it ended. Collected
// without an index, it is the same, and nothing that is not on it is held.
func TestAPageEndsWhereTheNextRowWouldPassItsBytes(t *testing.T) {
	length := func(b *book) int { return b.length }
	rapid.Check(t, func(t *rapid.T) {
		x := New(books)
		rows := rapid.IntRange(1, 40).Draw(t, "rows")
		for i := range rows {
			put(x, &book{id: fmt.Sprintf("r%02d", i), title: drawTitle(t), length: rapid.IntRange(1, 100).Draw(t, "length")})
		}
		come := rapid.Permutation(slices.Collect(x.With(Everything, ""))).Draw(t, "as they come")
		limit := Limit{Size: rapid.IntRange(1, 10).Draw(t, "size"), Bytes: rapid.IntRange(1, 400).Draw(t, "bytes")}
		order, everything := drawOrder(t), x.Pick(Everything, "", AnyFacet)
		all := x.List(books.Query(Request{Order: order, Limit: Limit{Size: rows}}), everything, length).Items
		var after *Position
		for read := 0; read < rows; {
			page := x.List(books.Query(Request{Order: order, Limit: limit, After: after}), everything, length)
			fit, bytes := 0, 0
			for fit < min(limit.Size, rows-read) && (fit == 0 || bytes+all[read+fit].length+1 <= limit.Bytes) {
				bytes += all[read+fit].length + 1
				fit++
			}
			if !slices.Equal(page.Items, all[read:read+fit]) || page.HasMore != (read+fit < rows) || page.Total != rows {
				t.Fatalf("%+v after %d of %d: %d items, has_more %t, total %d; want %d items", limit, read, rows, len(page.Items), page.HasMore, page.Total, fit)
			}
			collector := NewCollector(Request{Order: order, Limit: limit, After: after}, length)
			for _, b := range come {
				harness.Must(t, collector.Add(Position{b.title, b.id}, func() (*book, error) { return b, nil }))
			}
			if got := collector.Page(); !reflect.DeepEqual(got, page) || len(collector.rows) > fit+1 {
				t.Fatalf("collected %+v and %d rows, want %+v", got, len(collector.rows), page)
			}
			read, after = read+fit, &page.Next
		}
	})
}

// The books with a status are in one bucket per facet.
func TestWithYieldsTheItemsOfAllFacetsUntilToldToStop(t *testing.T) {
	x := New(books)
	for i, status := range []string{"open", "closed", "open", "lost"} {
		put(x, &book{id: fmt.Sprint(i), status: status})
	}
	var all []string
	for b := range x.With(status, "") {
		all = append(all, b.id)
	}
	slices.Sort(all)
	harness.Same(t, "all", []string{"0", "1", "2", "3"}, all)
	first := 0
	for range x.With(status, "") {
		first++
		break
	}
	harness.Same(t, "items until it is told to stop", 1, first)
}

func TestRemovedItemsLeaveNothing(t *testing.T) {
	x := New(books)
	for i := range 100 {
		put(x, &book{id: fmt.Sprint(i), title: fmt.Sprint(i % 7), status: "open"})
		put(x, &book{id: fmt.Sprint(i), title: fmt.Sprint(i % 5), status: "closed"})
	}
	for i := range 100 {
		x.Remove(fmt.Sprint(i))
	}
	for name, n := range map[string]int{
		"items": x.Len(), "titles": x.sorted[byTitle].Len(), "times": x.sorted[byTime].Len(), "buckets": x.buckets.Len(),
	} {
		harness.Same(t, name+" that are left", 0, n)
	}
}
