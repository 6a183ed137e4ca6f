// Package tally counts many small objects by the few large ones that they belong to.
//
// It is fed by the watch and keeps nothing but sums, so that a count costs the same for ten
// findings as for a hundred thousand, and a change of one finding costs one addition.
package tally

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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

	mu   sync.RWMutex
	sums map[types.NamespacedName]map[string]int32
}

// New returns an empty tally. The function says what an object adds; false: nothing. It must
// be pure: what an object has added is taken away again by calling it with the same object.
func New(share func(client.Object) (Share, bool)) *Tally {
	return &Tally{share: share, sums: map[types.NamespacedName]map[string]int32{}}
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
// A tally must have one handler on one watch, without predicates: it counts each event once.
// The controller waits until the handler has seen everything that was there at the start
// before it reconciles anything, so no reconcile ever sees half a sum.
func (t *Tally) Handler(delay time.Duration) handler.EventHandler {
	later := func(q workqueue.TypedRateLimitingInterface[reconcile.Request], owners ...types.NamespacedName) {
		for _, owner := range owners {
			q.AddAfter(reconcile.Request{NamespacedName: owner}, delay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			owners := t.change(nil, e.Object)
			if !e.IsInInitialList { // At the start every owner is reconciled on its own account.
				later(q, owners...)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(q, t.change(e.ObjectOld, e.ObjectNew)...)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(q, t.change(e.Object, nil)...)
		},
	}
}

// change replaces what before added by what after adds; either may be nil. It returns the
// owners whose sums have changed.
func (t *Tally) change(before, after client.Object) []types.NamespacedName {
	old, hadShare := t.shareOf(before)
	now, hasShare := t.shareOf(after)
	if hadShare == hasShare && old == now {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var owners []types.NamespacedName
	if hadShare {
		t.add(old, -1)
		owners = append(owners, old.Owner)
	}
	if hasShare {
		t.add(now, 1)
		if !hadShare || now.Owner != old.Owner {
			owners = append(owners, now.Owner)
		}
	}
	return owners
}

func (t *Tally) shareOf(object client.Object) (Share, bool) {
	if object == nil {
		return Share{}, false
	}
	return t.share(object)
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
