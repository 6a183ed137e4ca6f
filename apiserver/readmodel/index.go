package readmodel

import (
	"cmp"
	"slices"

	"github.com/tidwall/btree"
)

// facet is the combination of a row's values of the fields that have few. There are so few
// combinations that what filters ask of these fields is answered by picking facets.
type facet [3]string

// field is one, or a combination, by which rows are kept apart.
type field uint8

// everything keeps all rows together, without facets: the list without a filter.
const everything field = 0

// bucketKey names the rows that have a value of a field, and a facet.
type bucketKey struct {
	field field
	value string
	facet facet
}

func (k bucketKey) compare(other bucketKey) int {
	return cmp.Or(
		cmp.Compare(k.field, other.field),
		cmp.Compare(k.value, other.value),
		slices.Compare(k.facet[:], other.facet[:]),
	)
}

// bucket is a run of rows in the sorted trees, where they are kept together by its id.
type bucket struct {
	key   bucketKey
	id    uint64
	count int
}

// layout says how an index keeps a kind of row.
type layout[T any] struct {
	// sorts are the fields that a list may be sorted by; the first is the default.
	sorts []Sort
	// values are what is shown of those fields, in their order, as the text whose bytes sort
	// as the list is to be sorted.
	values func(T) []string
	// keys are the buckets that hold a row: for every row as many, in the order of the fields.
	// The last of them, countOnly, hold nothing and only count. nil: the rows are in no list.
	keys      func(T) []bucketKey
	countOnly int
}

// row is an item with where it stands. It never changes.
type row[T any] struct {
	id     string
	values []string
	item   T
	// buckets that hold or count the row, in the order of the layout's keys.
	buckets []uint64
}

func (r *row[T]) position(sort int) Position { return Position{Value: r.values[sort], ID: r.id} }

// entry places a row in a bucket of a sorted tree.
type entry[T any] struct {
	bucket uint64
	row    *row[T]
}

// index keeps rows by id and, for each sort order, in runs by bucket. All of it lives in
// copy-on-write trees, so that a snapshot costs the same whatever there is.
type index[T any] struct {
	layout *layout[T]
	byID   *btree.BTreeG[*row[T]]
	// sorted has a tree for each of the layout's sorts.
	sorted  []*btree.BTreeG[entry[T]]
	buckets *btree.BTreeG[bucket]
	// lastBucket is the last bucket id given; none is given twice.
	lastBucket uint64
	// frozen is the last snapshot, nil where the index has changed since.
	frozen *index[T]
}

func newIndex[T any](l *layout[T]) *index[T] {
	// A snapshot has one writer before it is published and none after, so no tree needs a lock.
	options := btree.Options{NoLocks: true}
	x := &index[T]{
		layout:  l,
		byID:    btree.NewBTreeGOptions(func(a, b *row[T]) bool { return a.id < b.id }, options),
		buckets: btree.NewBTreeGOptions(func(a, b bucket) bool { return a.key.compare(b.key) < 0 }, options),
	}
	for sort := range l.sorts {
		x.sorted = append(x.sorted, btree.NewBTreeGOptions(func(a, b entry[T]) bool {
			if a.bucket != b.bucket {
				return a.bucket < b.bucket
			}
			if order := cmp.Compare(a.row.values[sort], b.row.values[sort]); order != 0 {
				return order < 0
			}
			return a.row.id < b.row.id
		}, options))
	}
	return x
}

// snapshot returns a copy that later changes of the index do not touch.
func (x *index[T]) snapshot() *index[T] {
	if x.frozen == nil {
		x.frozen = &index[T]{layout: x.layout, byID: x.byID.IsoCopy(), buckets: x.buckets.IsoCopy()}
		for _, tree := range x.sorted {
			x.frozen.sorted = append(x.frozen.sorted, tree.IsoCopy())
		}
	}
	return x.frozen
}

// dirty reports whether the index has changed since its last snapshot.
func (x *index[T]) dirty() bool { return x.frozen == nil }

// get returns the item with that id.
func (x *index[T]) get(id string) (item T, ok bool) {
	found, ok := x.byID.Get(&row[T]{id: id})
	if !ok {
		return item, false
	}
	return found.item, true
}

// put adds an item, in place of the one with its id.
func (x *index[T]) put(id string, item T) {
	x.frozen = nil
	added := &row[T]{id: id, item: item}
	if x.layout.keys != nil {
		added.values = x.layout.values(item)
	}
	old, _ := x.byID.Set(added)
	x.count(old, added)
	for sort, tree := range x.sorted {
		moved := old != nil && old.values[sort] != added.values[sort]
		for place, bucket := range x.held(added) {
			if old != nil && (moved || old.buckets[place] != bucket) {
				tree.Delete(entry[T]{bucket: old.buckets[place], row: old})
			}
			tree.Set(entry[T]{bucket: bucket, row: added})
		}
	}
}

// remove takes the item with that id out.
func (x *index[T]) remove(id string) {
	old, ok := x.byID.Delete(&row[T]{id: id})
	if !ok {
		return
	}
	x.frozen = nil
	for _, tree := range x.sorted {
		for _, bucket := range x.held(old) {
			tree.Delete(entry[T]{bucket: bucket, row: old})
		}
	}
	for _, key := range x.keys(old) {
		x.add(key, -1)
	}
}

// held are the buckets that hold a row, without those that only count it.
func (x *index[T]) held(r *row[T]) []uint64 {
	return r.buckets[:max(len(r.buckets)-x.layout.countOnly, 0)]
}

func (x *index[T]) keys(r *row[T]) []bucketKey {
	if x.layout.keys == nil {
		return nil
	}
	return x.layout.keys(r.item)
}

// count moves the counts from the old row, which may be nil, to the one added, and tells that
// one which buckets hold it.
func (x *index[T]) count(old, added *row[T]) {
	keys := x.keys(added)
	added.buckets = make([]uint64, len(keys))
	var before []bucketKey
	if old != nil {
		before = x.keys(old)
	}
	for place, key := range keys {
		switch {
		case old == nil:
			added.buckets[place] = x.add(key, 1)
		case before[place] == key:
			added.buckets[place] = old.buckets[place]
		default:
			x.add(before[place], -1)
			added.buckets[place] = x.add(key, 1)
		}
	}
}

// add changes a bucket's count and returns its id. A bucket is there while it counts anything.
func (x *index[T]) add(key bucketKey, change int) uint64 {
	b, ok := x.buckets.Get(bucket{key: key})
	if !ok {
		x.lastBucket++
		b = bucket{key: key, id: x.lastBucket}
	}
	b.count += change
	if b.count == 0 {
		x.buckets.Delete(b)
	} else {
		x.buckets.Set(b)
	}
	return b.id
}

// pick returns the buckets of a field's value whose facets match.
func (x *index[T]) pick(f field, value string, matches func(facet) bool) selection[T] {
	var s selection[T]
	x.buckets.Ascend(bucket{key: bucketKey{field: f, value: value}}, func(b bucket) bool {
		if b.key.field != f || b.key.value != value {
			return false
		}
		if matches(b.key.facet) {
			s.buckets = append(s.buckets, b.id)
			s.count += b.count
		}
		return true
	})
	return s
}

// each yields the rows of a bucket in the order of the first sort.
func (x *index[T]) each(id uint64, yield func(T) bool) {
	x.sorted[0].Ascend(entry[T]{bucket: id, row: x.before()}, func(e entry[T]) bool {
		return e.bucket == id && yield(e.row.item)
	})
}

// before is a row that comes before every other, whatever the sort.
func (x *index[T]) before() *row[T] { return x.pivot(0, Position{}) }

// pivot is a row at a position.
func (x *index[T]) pivot(sort int, at Position) *row[T] {
	r := &row[T]{id: at.ID, values: make([]string, len(x.layout.sorts))}
	r.values[sort] = at.Value
	return r
}
