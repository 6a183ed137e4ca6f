// Package tally counts many small objects per large object that they belong to.
//
// It is fed by the watch, so that a count costs the same for ten findings as for a hundred thousand, and a change of
// one finding costs one addition. It keeps each object's share, about a hundred bytes, because the watch may report the
// deletion of an unreadable object without its content.
package tally

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

// Share is what one object adds to the sums: 1, in one class of one owner.
type Share struct {
	// Owner is the object that the count belongs to.
	Owner types.NamespacedName
	// Class is the class that the object is counted in; "" is a class like any other.
	Class string
}

// ShareOf counts an object in a class of its owner, which is in the same namespace.
func ShareOf(object client.Object, owner v1alpha1.ResourceName, class string) Share {
	return Share{types.NamespacedName{Namespace: object.GetNamespace(), Name: string(owner)}, class}
}

// Tally holds the sums. It is safe for concurrent use.
type Tally struct {
	share func(client.Object) Share

	mu      sync.RWMutex
	counted map[types.NamespacedName]Share
	sums    map[types.NamespacedName]map[string]int32
}

// New returns an empty tally. share returns what an object adds.
func New(share func(client.Object) Share) *Tally {
	return &Tally{share: share, counted: map[types.NamespacedName]Share{},
		sums: map[types.NamespacedName]map[string]int32{}}
}

// Count returns the number of the owner's objects in that class.
func (t *Tally) Count(owner types.NamespacedName, class string) int32 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.sums[owner][class]
}

// Total returns the number of the owner's objects in all classes.
func (t *Tally) Total(owner types.NamespacedName) int32 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var total int32
	for _, n := range t.sums[owner] {
		total += n
	}
	return total
}

// Handler feeds the tally from a watch, and enqueues the owner watch.GatherDelay after its sums have
// changed. The queue holds an owner only once, so an import of 10,000 findings costs one reconcile
// per delay, not one per finding.
//
// A tally must have one handler on one watch, without predicates. The controller reconciles nothing
// until the handler has seen all objects that existed at the start, so no reconcile sees a partial
// sum.
func (t *Tally) Handler() handler.EventHandler {
	return watch.Changes(func(_ context.Context, change watch.Change, q watch.Queue) {
		var owners []types.NamespacedName
		if change.After == nil {
			owners = t.remove(change.Before)
		} else {
			owners = t.count(change.After)
		}
		if change.Initial {
			return // at the start every owner is reconciled anyway
		}
		for _, owner := range owners {
			q.AddAfter(reconcile.Request{NamespacedName: owner}, watch.GatherDelay)
		}
	})
}

// count replaces an object's share. It returns the owners whose sums have changed.
func (t *Tally) count(object client.Object) []types.NamespacedName {
	now := t.share(object)
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

// remove subtracts an object's share. It returns the owner whose sums have changed.
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

// add removes empty sums, so that deleted objects leave nothing behind.
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
