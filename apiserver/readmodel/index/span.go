package index

import "sort"

// Span is a range of the values of a field: From is inclusive, To exclusive. Empty means unbounded.
type Span struct {
	From, To string
}

// Holds reports whether a value is in the span.
func (s Span) Holds(value string) bool { return value >= s.From && (s.To == "" || value < s.To) }

// Unbounded reports whether every value is in the span.
func (s Span) Unbounded() bool { return s == Span{} }

// countWithin counts the rows of the buckets within a span of the values of a sort. It searches each bucket
// instead of visiting all its rows.
func (x *Index[T]) countWithin(buckets []uint64, by int, within Span) (count int) {
	tree := x.sorted[by]
	rank := func(bucket uint64, value string) int {
		pivot := entry[T]{bucket: bucket, row: x.pivot(by, Position{Value: value})}
		return sort.Search(tree.Len(), func(i int) bool {
			e, _ := tree.GetAt(i)
			return !tree.Less(e, pivot)
		})
	}
	for _, id := range buckets {
		last := rank(id+1, "")
		if within.To != "" {
			last = rank(id, within.To)
		}
		count += max(last-rank(id, within.From), 0)
	}
	return count
}
