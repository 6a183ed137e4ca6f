package index

import (
	"iter"
	"slices"

	"github.com/tidwall/btree"
)

// merge yields the rows of several buckets after a position and within a span, in the requested order.
func (x *Index[T]) merge(buckets []uint64, q Query, within Span) iter.Seq[*row[T]] {
	return func(yield func(*row[T]) bool) {
		runs := make([]*run[T], 0, len(buckets))
		first := x.first(q, within)
		for _, id := range buckets {
			r := &run[T]{entries: x.sorted[q.Sort].Iter(), bucket: id, query: q, span: within}
			if r.start(first) {
				runs = append(runs, r)
			}
		}
		// The run with the next row comes first, so that many runs cost little more than one.
		compare := func(a, b *run[T]) int { return q.compare(a.position(), b.position()) }
		slices.SortFunc(runs, compare)
		for len(runs) > 0 {
			next := runs[0]
			if !yield(next.row()) {
				return
			}
			if !next.advance() {
				runs = runs[1:]
				continue
			}
			place, _ := slices.BinarySearchFunc(runs[1:], next, compare)
			copy(runs, runs[1:place+1])
			runs[place] = next
		}
	}
}

// first returns where each run starts: at the position where the previous page ended, or at the edge of the
// span if that is further on. nil, when descending, is the run's end.
func (x *Index[T]) first(q Query, within Span) *row[T] {
	if !q.descending {
		at := Position{Value: within.From}
		if q.after != nil && q.after.compare(at) > 0 {
			at = *q.after
		}
		return x.pivot(q.Sort, at)
	}
	if within.To == "" && q.after == nil {
		return nil
	}
	at := Position{Value: within.To}
	if q.after != nil && (within.To == "" || q.after.compare(at) < 0) {
		at = *q.after
	}
	return x.pivot(q.Sort, at)
}

// run walks one bucket.
type run[T any] struct {
	entries btree.IterG[entry[T]]
	bucket  uint64
	query   Query
	span    Span
}

func (r *run[T]) row() *row[T] { return r.entries.Item().row }

func (r *run[T]) position() Position { return r.row().position(r.query.Sort) }

// start moves to the first row.
func (r *run[T]) start(first *row[T]) bool {
	if !r.query.descending {
		if !r.entries.Seek(entry[T]{bucket: r.bucket, row: first}) {
			return false
		}
		if r.inside() && r.query.after != nil && r.position() == *r.query.after {
			return r.advance()
		}
		return r.inside()
	}
	pivot := entry[T]{bucket: r.bucket, row: first}
	if first == nil {
		pivot = r.end()
	}
	if !r.entries.Seek(pivot) {
		return r.entries.Last() && r.inside()
	}
	return r.advance()
}

func (r *run[T]) advance() bool {
	if r.query.descending {
		return r.entries.Prev() && r.inside()
	}
	return r.entries.Next() && r.inside()
}

func (r *run[T]) inside() bool {
	e := r.entries.Item()
	return e.bucket == r.bucket && (r.span.Unbounded() || r.span.Holds(e.row.values[r.query.Sort]))
}

// end returns an entry that sorts before the first row of every later bucket.
func (r *run[T]) end() entry[T] {
	values := make([]string, r.query.Sort+1)
	return entry[T]{bucket: r.bucket + 1, row: &row[T]{values: values}}
}
