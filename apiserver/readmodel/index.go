package readmodel

import (
	"cmp"

	"github.com/tidwall/btree"
)

// facet is the combination of a finding's values of the fields that have few. There are at
// most 27, so what filters ask of these fields is answered by picking facets.
type facet struct {
	status, userStatus, severity string
}

func (f facet) compare(other facet) int {
	return cmp.Or(
		cmp.Compare(f.status, other.status),
		cmp.Compare(f.userStatus, other.userStatus),
		cmp.Compare(f.severity, other.severity),
	)
}

func facetOf(i *Item) facet {
	return facet{status: i.Status, userStatus: i.UserStatus, severity: i.Severity}
}

// field is one, or a combination, by which findings are kept apart.
type field uint8

const (
	// everything keeps all findings together, without facets: the list without a filter.
	everything field = iota
	anyValue
	repoField
	projectField
	classField
	repoClassField
	projectClassField
	// repoProjectField only counts: it tells whether a project's findings are all in a repository.
	repoProjectField
)

// places is how many buckets hold a finding: one for each field but the last.
const places = int(repoProjectField)

// bucketKey names the findings that have a value of a field, and a facet.
type bucketKey struct {
	field field
	value string
	facet facet
}

func (k bucketKey) compare(other bucketKey) int {
	return cmp.Or(
		cmp.Compare(k.field, other.field),
		cmp.Compare(k.value, other.value),
		k.facet.compare(other.facet),
	)
}

// bucket is a run of findings in the sorted trees, where they are kept together by its id.
type bucket struct {
	key   bucketKey
	id    uint64
	count int
}

// placesOf lists the keys of the buckets that hold an item.
func placesOf(i *Item) [places]bucketKey {
	facet := facetOf(i)
	return [places]bucketKey{
		{field: everything},
		{field: anyValue, facet: facet},
		{field: repoField, value: i.RepoID, facet: facet},
		{field: projectField, value: i.ProjectID, facet: facet},
		{field: classField, value: i.Class, facet: facet},
		{field: repoClassField, value: both(i.RepoID, i.Class), facet: facet},
		{field: projectClassField, value: both(i.ProjectID, i.Class), facet: facet},
	}
}

func repoProjectKey(i *Item) bucketKey {
	return bucketKey{field: repoProjectField, value: both(i.RepoID, i.ProjectID), facet: facetOf(i)}
}

// both is a value of a combination. It needs no escapes: resource names hold no slash.
func both(resource, other string) string { return resource + "/" + other }

// entry places an item in a bucket of a sorted tree.
type entry struct {
	bucket uint64
	item   *Item
}

// index keeps a partition's findings by id and, for each sort order, in runs by bucket. All of
// it lives in copy-on-write trees, so that a snapshot costs the same whatever there is.
type index struct {
	byID      *btree.BTreeG[*Item]
	byCreated *btree.BTreeG[entry]
	byUpdated *btree.BTreeG[entry]
	buckets   *btree.BTreeG[bucket]
	// lastBucket is the last bucket id given; none is given twice.
	lastBucket uint64
}

func newIndex() *index {
	// A snapshot has one writer before it is published and none after, so no tree needs a lock.
	options := btree.Options{NoLocks: true}
	sorted := func(by Sort) *btree.BTreeG[entry] {
		return btree.NewBTreeGOptions(func(a, b entry) bool {
			if a.bucket != b.bucket {
				return a.bucket < b.bucket
			}
			return a.item.position(by).compare(b.item.position(by)) < 0
		}, options)
	}
	return &index{
		byID:      btree.NewBTreeGOptions(func(a, b *Item) bool { return a.ID < b.ID }, options),
		byCreated: sorted(SortCreatedAt),
		byUpdated: sorted(SortUpdatedAt),
		buckets:   btree.NewBTreeGOptions(func(a, b bucket) bool { return a.key.compare(b.key) < 0 }, options),
	}
}

// snapshot returns a copy that later changes of the index do not touch.
func (x *index) snapshot() *index {
	return &index{
		byID:      x.byID.IsoCopy(),
		byCreated: x.byCreated.IsoCopy(),
		byUpdated: x.byUpdated.IsoCopy(),
		buckets:   x.buckets.IsoCopy(),
	}
}

func (x *index) sorted(by Sort) *btree.BTreeG[entry] {
	if by == SortUpdatedAt {
		return x.byUpdated
	}
	return x.byCreated
}

// put adds an item, in place of the one with its id.
func (x *index) put(item *Item) {
	old, _ := x.byID.Set(item)
	x.count(old, item)
	for _, by := range []Sort{SortCreatedAt, SortUpdatedAt} {
		tree := x.sorted(by)
		moved := old != nil && old.position(by) != item.position(by)
		for place, bucket := range item.buckets {
			if old != nil && (moved || old.buckets[place] != bucket) {
				tree.Delete(entry{bucket: old.buckets[place], item: old})
			}
			tree.Set(entry{bucket: bucket, item: item})
		}
	}
}

// remove takes the item with that id out.
func (x *index) remove(id string) {
	old, ok := x.byID.Delete(&Item{ID: id})
	if !ok {
		return
	}
	for _, by := range []Sort{SortCreatedAt, SortUpdatedAt} {
		tree := x.sorted(by)
		for _, bucket := range old.buckets {
			tree.Delete(entry{bucket: bucket, item: old})
		}
	}
	for _, key := range placesOf(old) {
		x.add(key, -1)
	}
	x.add(repoProjectKey(old), -1)
}

// count moves the counts from the old item, which may be nil, to the new one, and tells the
// new one which buckets hold it.
func (x *index) count(old, item *Item) {
	keys := placesOf(item)
	if old == nil {
		for place, key := range keys {
			item.buckets[place] = x.add(key, 1)
		}
		x.add(repoProjectKey(item), 1)
		return
	}
	for place, oldKey := range placesOf(old) {
		item.buckets[place] = old.buckets[place]
		if oldKey != keys[place] {
			x.add(oldKey, -1)
			item.buckets[place] = x.add(keys[place], 1)
		}
	}
	if oldKey, key := repoProjectKey(old), repoProjectKey(item); oldKey != key {
		x.add(oldKey, -1)
		x.add(key, 1)
	}
}

// add changes a bucket's count and returns its id. A bucket is there while it counts anything.
func (x *index) add(key bucketKey, change int) uint64 {
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
