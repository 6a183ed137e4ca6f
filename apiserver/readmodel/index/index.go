// Package index keeps items sorted: by id and, for each order that a list can have, in a copy-on-write B-tree.
// The cost of a snapshot does not depend on the number of items, and a snapshot is read without a lock.
package index

import (
	"cmp"
	"iter"
	"slices"
	"unique"

	"github.com/tidwall/btree"
)

// Facet is the combination of a row's values of the fields with few values. There are so few combinations that
// filters on these fields are evaluated by picking facets.
type Facet [3]string

// AnyFacet matches all facets.
func AnyFacet(Facet) bool { return true }

// Field is a field, or a combination of fields, that rows are indexed by.
type Field uint8

// Everything puts all rows together: the list without a filter.
const Everything Field = 0

// Key identifies the rows that have a value of a field, and a facet.
type Key struct {
	Field Field
	Value string
	// Facet is stored once for all buckets; the zero value is that of rows without a facet.
	Facet unique.Handle[Facet]
}

func (k Key) compare(other Key) int {
	order := cmp.Or(cmp.Compare(k.Field, other.Field), cmp.Compare(k.Value, other.Value))
	if order != 0 || k.Facet == other.Facet {
		return order
	}
	mine, its := k.facet(), other.facet()
	return slices.Compare(mine[:], its[:])
}

func (k Key) facet() Facet {
	if k.Facet == (unique.Handle[Facet]{}) {
		return Facet{}
	}
	return k.Facet.Value()
}

// bucket is a run of rows in the sorted trees, which sort by the bucket's id first.
type bucket struct {
	key   Key
	id    uint64
	count int
}

// Layout defines how an index stores a kind of row.
type Layout[T any] struct {
	// Sorts are the fields that a list may be sorted by; the first is the default.
	Sorts []Sort
	// Values returns the row's values of those fields, in their order, as texts whose byte order is the order
	// of the list.
	Values func(T) []string
	// Keys returns the keys of the buckets that contain a row, each once. The last CountOnly of them contain
	// nothing and only count. If Keys is nil, the rows are in no list.
	Keys      func(T) []Key
	CountOnly int
	// Held is, for each sort, how many of the first keys have a bucket in its tree: fewer buckets take less
	// memory and less time to write. No sort may have more of them than the one before it. 0, or no entry,
	// means all.
	Held []int
	// Text returns the text that is searched for words; nil if the rows cannot be searched.
	Text func(T) string
}

// row is an item with its position. It never changes.
type row[T any] struct {
	id     string
	values []string
	item   T
	// buckets that contain or count the row, in the order of the layout's keys.
	buckets []uint64
	// text is the item's text, kept in the row because a search reads every row.
	text string
}

func (r *row[T]) position(sort int) Position { return Position{Value: r.values[sort], ID: r.id} }

// entry places a row in a bucket of a sorted tree.
type entry[T any] struct {
	bucket uint64
	row    *row[T]
}

// Index stores rows by id and, for each sort order, in runs by bucket. It has one writer; its snapshots have
// any number of readers.
type Index[T any] struct {
	layout *Layout[T]
	byID   *btree.BTreeG[*row[T]]
	// sorted has one tree for each of the layout's sorts.
	sorted  []*btree.BTreeG[entry[T]]
	buckets *btree.BTreeG[bucket]
	// lastBucket is the last bucket id assigned; ids are never reused.
	lastBucket uint64
	// frozen is the last snapshot, nil if the index has changed since.
	frozen *Index[T]
}

// New returns an empty index.
func New[T any](l *Layout[T]) *Index[T] {
	// A snapshot has one writer before it is published and none after, so no tree needs a lock.
	options := btree.Options{NoLocks: true}
	x := &Index[T]{
		layout:  l,
		byID:    btree.NewBTreeGOptions(func(a, b *row[T]) bool { return a.id < b.id }, options),
		buckets: btree.NewBTreeGOptions(func(a, b bucket) bool { return a.key.compare(b.key) < 0 }, options),
	}
	for sort := range l.Sorts {
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

// Snapshot returns a copy that later changes of the index do not touch.
func (x *Index[T]) Snapshot() *Index[T] {
	if x.frozen == nil {
		x.frozen = &Index[T]{layout: x.layout, byID: x.byID.IsoCopy(), buckets: x.buckets.IsoCopy()}
		for _, tree := range x.sorted {
			x.frozen.sorted = append(x.frozen.sorted, tree.IsoCopy())
		}
	}
	return x.frozen
}

// Len returns the number of items.
func (x *Index[T]) Len() int { return x.byID.Len() }

// Dirty reports whether the index has changed since its last snapshot.
func (x *Index[T]) Dirty() bool { return x.frozen == nil }

// Get returns the item with that id.
func (x *Index[T]) Get(id string) (item T, ok bool) {
	found, ok := x.byID.Get(&row[T]{id: id})
	if !ok {
		return item, false
	}
	return found.item, true
}

// Put adds an item. If there is an item with that id already, Put replaces and returns it.
func (x *Index[T]) Put(id string, item T) (before T, replaced bool) {
	x.frozen = nil
	added := &row[T]{id: id, item: item}
	if x.layout.Keys != nil {
		added.values = x.layout.Values(item)
	}
	if x.layout.Text != nil {
		added.text = x.layout.Text(item)
	}
	old, _ := x.byID.Set(added)
	x.count(old, added)
	for sort, tree := range x.sorted {
		if old != nil {
			moved := old.values[sort] != added.values[sort]
			for place, bucket := range x.held(old, sort) {
				if moved || !holds(x.held(added, sort), bucket, place) {
					tree.Delete(entry[T]{bucket: bucket, row: old})
				}
			}
		}
		for _, bucket := range x.held(added, sort) {
			tree.Set(entry[T]{bucket: bucket, row: added})
		}
	}
	if old == nil {
		return before, false
	}
	return old.item, true
}

// holds reports whether buckets contains bucket, most likely at its former place.
func holds(buckets []uint64, bucket uint64, place int) bool {
	return place < len(buckets) && buckets[place] == bucket || slices.Contains(buckets, bucket)
}

// Remove removes the item with that id, and returns it.
func (x *Index[T]) Remove(id string) (before T, ok bool) {
	old, ok := x.byID.Delete(&row[T]{id: id})
	if !ok {
		return before, false
	}
	x.frozen = nil
	for sort, tree := range x.sorted {
		for _, bucket := range x.held(old, sort) {
			tree.Delete(entry[T]{bucket: bucket, row: old})
		}
	}
	for _, key := range x.keys(old) {
		x.add(key, -1)
	}
	return old.item, true
}

// held returns the buckets that contain a row in the tree of a sort, without those that only count it.
func (x *Index[T]) held(r *row[T], sort int) []uint64 {
	if sort < len(x.layout.Held) && x.layout.Held[sort] > 0 {
		return r.buckets[:x.layout.Held[sort]]
	}
	return r.buckets[:max(len(r.buckets)-x.layout.CountOnly, 0)]
}

func (x *Index[T]) keys(r *row[T]) []Key {
	if x.layout.Keys == nil {
		return nil
	}
	return x.layout.Keys(r.item)
}

// count moves the counts from the old row, which may be nil, to the added one, and sets the added row's
// buckets. A bucket that contains both rows keeps its id.
func (x *Index[T]) count(old, added *row[T]) {
	keys := x.keys(added)
	added.buckets = make([]uint64, len(keys))
	var before []Key
	if old != nil {
		before = x.keys(old)
	}
	for place, key := range keys {
		if place < len(before) && before[place] == key {
			added.buckets[place] = old.buckets[place]
		} else {
			added.buckets[place] = x.add(key, 1)
		}
	}
	for place, key := range before {
		if place >= len(keys) || keys[place] != key {
			x.add(key, -1)
		}
	}
}

// add changes a bucket's count and returns its id. A bucket exists while its count is not 0.
func (x *Index[T]) add(key Key, change int) uint64 {
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

// Pick selects the buckets of a field's value whose facets match. The trees of all sorts must have them.
func (x *Index[T]) Pick(f Field, value string, matches func(Facet) bool) Selection[T] {
	return x.PickUpTo(len(x.layout.Sorts)-1, f, value, matches)
}

// PickUpTo is Pick for buckets that only the trees of the sorts up to last have.
func (x *Index[T]) PickUpTo(last int, f Field, value string, matches func(Facet) bool) Selection[T] {
	s := Selection[T]{last: last}
	x.buckets.Ascend(bucket{key: Key{Field: f, Value: value}}, func(b bucket) bool {
		if b.key.Field != f || b.key.Value != value {
			return false
		}
		if matches(b.key.facet()) {
			s.buckets = append(s.buckets, b.id)
			s.Count += b.count
		}
		return true
	})
	return s
}

// PickFirst selects the bucket of a field's value that only the tree of the first sort has.
func (x *Index[T]) PickFirst(f Field, value string) Selection[T] {
	return x.PickUpTo(0, f, value, AnyFacet)
}

// PickFrom is PickFirst for all of the field's values that are not less than value.
func (x *Index[T]) PickFrom(f Field, value string) Selection[T] {
	var s Selection[T]
	x.buckets.Ascend(bucket{key: Key{Field: f, Value: value}}, func(b bucket) bool {
		if b.key.Field != f {
			return false
		}
		s.buckets = append(s.buckets, b.id)
		s.Count += b.count
		return true
	})
	return s
}

// Values returns the values of a field that rows have, sorted.
func (x *Index[T]) Values(f Field) []string {
	var values []string
	x.buckets.Ascend(bucket{key: Key{Field: f}}, func(b bucket) bool {
		if b.key.Field != f {
			return false
		}
		if n := len(values); n == 0 || values[n-1] != b.key.Value {
			values = append(values, b.key.Value)
		}
		return true
	})
	return values
}

// With yields the items that have a value of a field, with any facet.
func (x *Index[T]) With(f Field, value string) iter.Seq[T] {
	return func(yield func(T) bool) {
		more := true
		for _, id := range x.Pick(f, value, AnyFacet).buckets {
			x.sorted[0].Ascend(entry[T]{bucket: id, row: x.pivot(0, Position{})}, func(e entry[T]) bool {
				if e.bucket != id {
					return false
				}
				more = yield(e.row.item)
				return more
			})
			if !more {
				return
			}
		}
	}
}

// pivot returns a row at a position.
func (x *Index[T]) pivot(sort int, at Position) *row[T] {
	r := &row[T]{id: at.ID, values: make([]string, len(x.layout.Sorts))}
	r.values[sort] = at.Value
	return r
}
