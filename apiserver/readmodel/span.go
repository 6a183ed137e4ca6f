package readmodel

import (
	"sort"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// span is a range of the values of a field: from is in it, to is not. Empty is without bound.
type span struct {
	from, to string
}

func (s span) holds(value string) bool { return value >= s.from && (s.to == "" || value < s.to) }

func (s span) unbounded() bool { return s == span{} }

// spanOf is the span of the timestamps shown that are not before start, and before end.
func spanOf(start, end *time.Time) span { return span{from: bound(start), to: bound(end)} }

// bound is the first timestamp shown that is not before a time. Times are shown in whole
// seconds, so that is the second that follows unless the time is one itself.
func bound(t *time.Time) string {
	if t == nil {
		return ""
	}
	second := t.UTC().Truncate(time.Second)
	if second.Before(*t) {
		second = second.Add(time.Second)
	}
	switch year := second.Year(); {
	case year < 0:
		return "0" // before every timestamp
	case year > 9999:
		return ":" // after every timestamp
	}
	return render.Timestamp(second)
}

// countWithin counts the rows of the buckets that are in a span of the values of a sort. It
// looks at some rows of each bucket, not at all.
func (x *index[T]) countWithin(buckets []uint64, by int, within span) (count int) {
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
		if within.to != "" {
			last = rank(id, within.to)
		}
		count += max(last-rank(id, within.from), 0)
	}
	return count
}
