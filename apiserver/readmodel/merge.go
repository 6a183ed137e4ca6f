package readmodel

import (
	"iter"

	"github.com/tidwall/btree"
)

// merge yields the rows of several buckets after a position and within a span, in the order
// asked for.
func (x *index[T]) merge(buckets []uint64, q query, within span) iter.Seq[*row[T]] {
	return func(yield func(*row[T]) bool) {
		runs := make([]*run[T], 0, len(buckets))
		first := x.first(q, within)
		for _, id := range buckets {
			r := &run[T]{entries: x.sorted[q.sort].Iter(), bucket: id, query: q, span: within}
			if r.start(first) {
				runs = append(runs, r)
			}
		}
		for len(runs) > 0 {
			next := 0
			for i := 1; i < len(runs); i++ {
				order := runs[i].position().compare(runs[next].position())
				if (order < 0) != q.descending {
					next = i
				}
			}
			if !yield(runs[next].row()) {
				return
			}
			if !runs[next].advance() {
				runs[next] = runs[len(runs)-1]
				runs = runs[:len(runs)-1]
			}
		}
	}
}

// first is where each run starts to look: at the position that the page before ended at, or
// at the end of the span where that is further on. nil, when descending, is the run's end.
func (x *index[T]) first(q query, within span) *row[T] {
	if !q.descending {
		at := Position{Value: within.from}
		if q.after != nil && q.after.compare(at) > 0 {
			at = *q.after
		}
		return x.pivot(q.sort, at)
	}
	if within.to == "" && q.after == nil {
		return nil
	}
	at := Position{Value: within.to}
	if q.after != nil && (within.to == "" || q.after.compare(at) < 0) {
		at = *q.after
	}
	return x.pivot(q.sort, at)
}

// run walks one bucket.
type run[T any] struct {
	entries btree.IterG[entry[T]]
	bucket  uint64
	query   query
	span    span
}

func (r *run[T]) row() *row[T] { return r.entries.Item().row }

func (r *run[T]) position() Position { return r.row().position(r.query.sort) }

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
	return e.bucket == r.bucket && r.span.holds(e.row.values[r.query.sort])
}

// end is before the first row of every later bucket.
func (r *run[T]) end() entry[T] {
	values := make([]string, r.query.sort+1)
	return entry[T]{bucket: r.bucket + 1, row: &row[T]{values: values}}
}
