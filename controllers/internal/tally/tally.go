// Package tally counts many small objects by the few large ones that they belong to.
//
// It is fed by the watch, so that a count costs the same for ten findings as for a hundred thousand, and a
// change of one finding costs one addition. Of each object it keeps what it added, a hundred bytes: an object
// that cannot be read any more is deleted for who watches, without saying what it was.
package tally

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

// Share is what one object adds to the sums: one, in a class of an owner.
type Share struct {
	// Owner is whom the object is counted for.
	Owner types.NamespacedName
	// Class is what the object is counted as; "" is a class like any other.
	Class string
}

// Tally holds the sums. It is safe for concurrent use.
type Tally struct {
	share func(client.Object) (Share, bool)

	mu      sync.RWMutex
	counted map[types.NamespacedName]Share
	sums    map[types.NamespacedName]map[string]int32
}

// New returns an empty tally. The function returns what an object adds; false: nothing.
func New(share func(client.Object) (Share, bool)) *Tally {
	return &Tally{share: share, counted: map[types.NamespacedName]Share{},
		sums: map[types.NamespacedName]map[string]int32{}}
}

// Count is the number of the owner's objects in that class.
func (t *Tally) Count(owner types.NamespacedName, class string) int32 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.sums[owner][class]
}

// Total is the number of the owner's objects in all classes.
func (t *Tally) Total(owner types.NamespacedName) int32 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var total int32
	for _, n := range t.sums[owner] {
		total += n
	}
	return total
}

// Handler feeds the tally from a watch, and has the owner reconciled a delay after its sums
// have changed. The queue holds an owner once however often it is added, so an import of
// 10,000 findings costs a reconcile a delay and not one a finding.
//
// A tally must have one handler on one watch, without predicates.
// The controller waits until the handler has seen everything that was there at the start
// before it reconciles anything, so no reconcile ever sees half a sum.
func (t *Tally) Handler(delay time.Duration) handler.EventHandler {
	return watch.Changes(func(_ context.Context, change watch.Change, q watch.Queue) {
		var owners []types.NamespacedName
		if change.After == nil {
			owners = t.remove(change.Before)
		} else {
			owners = t.count(change.After)
		}
		if change.Initial {
			return // every owner is reconciled on its own account
		}
		for _, owner := range owners {
			q.AddAfter(reconcile.Request{NamespacedName: owner}, delay)
		}
	})
}

// count replaces what an object added before by what it adds now. It returns the owners whose sums have changed.
func (t *Tally) count(object client.Object) []types.NamespacedName {
	now, ok := t.share(object)
	if !ok {
		return t.remove(object)
	}
	key := client.ObjectKeyFromObject(object)
	t.mu.Lock()
	defer t.mu.Unlock()
	old, counted := t.counted[key]
	if counted && old == now {
		return nil
	}
	owners := []types.NamespacedName{now.Owner}
	if counted {
		t.add(old, -1)
		if old.Owner != now.Owner {
			owners = append(owners, old.Owner)
		}
	}
	t.counted[key] = now
	t.add(now, 1)
	return owners
}

// remove takes away what an object added. It returns the owner whose sums have changed.
func (t *Tally) remove(object client.Object) []types.NamespacedName {
	key := client.ObjectKeyFromObject(object)
	t.mu.Lock()
	defer t.mu.Unlock()
	old, counted := t.counted[key]
	if !counted {
		return nil
	}
	delete(t.counted, key)
	t.add(old, -1)
	return []types.NamespacedName{old.Owner}
}

// add leaves no empty sums behind, so that the tally does not grow by what has gone.
func (t *Tally) add(share Share, n int32) {
	sums := t.sums[share.Owner]
	if sums == nil {
		sums = map[string]int32{}
		t.sums[share.Owner] = sums
	}
	if sums[share.Class] += n; sums[share.Class] == 0 {
		delete(sums, share.Class)
	}
	if len(sums) == 0 {
		delete(t.sums, share.Owner)
	}
}
