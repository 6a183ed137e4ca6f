package readmodel

import (
	"iter"

	"github.com/tidwall/btree"
)

// merge yields the items of several buckets after a position, in the order asked for.
func (x *index) merge(buckets []uint64, q FindingQuery) iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		runs := make([]*run, 0, len(buckets))
		for _, id := range buckets {
			r := &run{entries: x.sorted(q.Sort).Iter(), bucket: id, descending: q.Order == OrderDesc}
			if r.start(q.Sort, q.After) {
				runs = append(runs, r)
			}
		}
		for len(runs) > 0 {
			next := 0
			for i := 1; i < len(runs); i++ {
				order := runs[i].item().position(q.Sort).compare(runs[next].item().position(q.Sort))
				if (order < 0) != (q.Order == OrderDesc) {
					next = i
				}
			}
			if !yield(runs[next].item()) {
				return
			}
			if !runs[next].advance() {
				runs[next] = runs[len(runs)-1]
				runs = runs[:len(runs)-1]
			}
		}
	}
}

// run walks one bucket.
type run struct {
	entries    btree.IterG[entry]
	bucket     uint64
	descending bool
}

func (r *run) item() *Item { return r.entries.Item().item }

// start moves to the first item after a position, or to the first of all where it is nil.
func (r *run) start(by Sort, after *Position) bool {
	if !r.descending {
		if !r.entries.Seek(r.pivot(by, after)) {
			return false
		}
		if after != nil && r.within() && r.item().position(by) == *after {
			return r.advance()
		}
		return r.within()
	}
	pivot := r.pivot(by, after)
	if after == nil {
		pivot = r.end()
	}
	if !r.entries.Seek(pivot) {
		return r.entries.Last() && r.within()
	}
	return r.advance()
}

func (r *run) advance() bool {
	if r.descending {
		return r.entries.Prev() && r.within()
	}
	return r.entries.Next() && r.within()
}

func (r *run) within() bool { return r.entries.Item().bucket == r.bucket }

func (r *run) pivot(by Sort, after *Position) entry {
	item := &Item{}
	if after != nil {
		item.ID = after.ID
		if by == SortUpdatedAt {
			item.UpdatedAt = after.Value
		} else {
			item.CreatedAt = after.Value
		}
	}
	return entry{bucket: r.bucket, item: item}
}

// end is before the first item of every later bucket.
func (r *run) end() entry { return entry{bucket: r.bucket + 1, item: &Item{}} }
