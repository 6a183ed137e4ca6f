package retention

import (
	"cmp"
	"context"
	"math"
	"sync"
	"time"

	"github.com/tidwall/btree"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

// agenda holds the finished objects, oldest first. The watch feeds it: a change costs one tree operation, and listing
// the due objects costs one step per result, regardless of how many are not due. An entry takes about a hundred bytes.
// It is safe for concurrent use.
type agenda struct {
	mu    sync.Mutex
	trees map[place]*btree.BTreeG[entry]
	// added holds the namespaces that got new entries since their last pass began.
	added sets.Set[string]
}

// place identifies the tree of an entry.
type place struct {
	namespace string
	shelf     shelf
}

// entry is a finished object.
type entry struct {
	// at is when it finished, in seconds since 1970.
	at   int64
	name string
	uid  types.UID
}

// first sorts before every entry.
var first = entry{at: math.MinInt64}

func earlier(a, b entry) bool { return compare(a, b) < 0 }

func compare(a, b entry) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.name, b.name), cmp.Compare(a.uid, b.uid))
}

func newAgenda() *agenda {
	return &agenda{trees: map[place]*btree.BTreeG[entry]{}, added: sets.Set[string]{}}
}

// begin must be called when a pass over a namespace begins.
func (a *agenda) begin(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.added.Delete(namespace)
}

// hasMore reports whether anything was added to the namespace since its last pass began.
func (a *agenda) hasMore(namespace string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.added.Has(namespace)
}

// due returns, in order, at most limit entries after the given one that finished at or before the
// cutoff.
func (a *agenda) due(from place, after entry, cutoff time.Time, limit int) []entry {
	return a.until(from, after, cutoff.Unix(), limit)
}

func (a *agenda) until(from place, after entry, cutoff int64, limit int) []entry {
	a.mu.Lock()
	defer a.mu.Unlock()
	tree := a.trees[from]
	if tree == nil {
		return nil
	}
	var out []entry
	tree.Ascend(after, func(e entry) bool {
		if e.at > cutoff || len(out) == limit {
			return false
		}
		if e != after {
			out = append(out, e)
		}
		return true
	})
	return out
}

// next returns when the first entry after the given one finished; false if there is none.
func (a *agenda) next(from place, after entry) (time.Time, bool) {
	list := a.until(from, after, math.MaxInt64, 1)
	if len(list) == 0 {
		return time.Time{}, false
	}
	return time.Unix(list[0].at, 0), true
}

// change replaces before by after; either may be nil. It reports whether that added or changed an
// entry.
func (a *agenda) change(before, after client.Object) bool {
	old, hadEntry := entryOf(before)
	current, hasEntry := entryOf(after)
	if hadEntry == hasEntry && old == current {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if hadEntry {
		a.remove(old.place, old.entry)
	}
	if hasEntry {
		tree := a.trees[current.place]
		if tree == nil {
			tree = btree.NewBTreeGOptions(earlier, btree.Options{NoLocks: true})
			a.trees[current.place] = tree
		}
		tree.Set(current.entry)
		a.added.Insert(current.place.namespace)
	}
	return hasEntry
}

// forget removes the entry of a deleted object, before the watch reports the deletion.
func (a *agenda) forget(from place, e entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(from, e)
}

// remove deletes the entry, and its tree if that becomes empty.
func (a *agenda) remove(from place, e entry) {
	tree := a.trees[from]
	if tree == nil {
		return
	}
	tree.Delete(e)
	if tree.Len() == 0 {
		delete(a.trees, from)
	}
}

// position is an entry and its place.
type position struct {
	place place
	entry entry
}

func entryOf(object client.Object) (position, bool) {
	if object == nil {
		return position{}, false
	}
	at, on, ok := finished(object)
	if !ok {
		return position{}, false
	}
	return position{
		place: place{namespace: object.GetNamespace(), shelf: on},
		entry: entry{at: at.Unix(), name: object.GetName(), uid: object.GetUID()},
	}, true
}

// handler feeds the agenda from a watch, and enqueues the organization with a delay after an entry was added. The queue
// holds the organization only once.
//
// Each kind must have one handler on one watch, without predicates. The controller reconciles nothing until the handler
// has seen all objects that existed at startup.
func (a *agenda) handler(delay time.Duration) handler.EventHandler {
	return watch.Changes(func(_ context.Context, change watch.Change, q watch.Queue) {
		// At startup every organization is reconciled anyway.
		if a.change(change.Before, change.After) && !change.Initial {
			watch.AddAfter(q, delay, watch.Organization(change.After))
		}
	})
}
