// Package watch provides predicates for events, and handlers that enqueue objects for them.
package watch

import (
	"cmp"
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Queue is a controller's queue.
type Queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// GatherDelay is how long changes are gathered, of which there may be thousands. Those of counted objects are gathered
// so that an import costs at most one write of its counts per delay, and those in a namespace before its objects are
// listed.
const GatherDelay = time.Second

// Target returns requests for the objects to be reconciled because of another object.
type Target = func(client.Object) []ctrl.Request

// Reference returns the target that an object names in its own namespace.
func Reference[O client.Object](to func(O) v1alpha1.ResourceName) Target {
	return func(object client.Object) []ctrl.Request {
		return one(types.NamespacedName{Namespace: object.GetNamespace(), Name: string(to(object.(O)))})
	}
}

// Itself is a Target: the changed object.
func Itself(object client.Object) []ctrl.Request { return one(client.ObjectKeyFromObject(object)) }

// Organization is a Target: the organization whose namespace the object is in, if any.
func Organization(object client.Object) []ctrl.Request { return OrganizationOf(object.GetNamespace()) }

// OrganizationOf returns a request for the organization that owns the namespace; nil for any other
// namespace.
func OrganizationOf(namespace string) []ctrl.Request {
	name, ours := strings.CutPrefix(namespace, v1alpha1.NamespacePrefix)
	if !ours || name == "" {
		return nil
	}
	return one(types.NamespacedName{Name: name})
}

func one(name types.NamespacedName) []ctrl.Request { return []ctrl.Request{{NamespacedName: name}} }

// Enqueue enqueues the target of an object when the object changes.
func Enqueue(target Target) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context,
		object client.Object) []ctrl.Request {
		return target(object)
	})
}

// EnqueueAfter enqueues the target of an object with a delay after the object has changed. The queue holds the
// target only once, so that an import costs one reconcile per delay, not one per object.
func EnqueueAfter(delay time.Duration, target Target) handler.EventHandler {
	return Changes(func(_ context.Context, change Change, q Queue) { AddAfter(q, delay, target(change.Object())) })
}

// EnqueueDeletedLater enqueues the target of an object when the object changes, after GatherDelay if it was deleted:
// retention deletes thousands one after the other.
func EnqueueDeletedLater(target Target) handler.EventHandler {
	changed, deleted := Enqueue(target), EnqueueAfter(GatherDelay, target)
	return handler.Funcs{CreateFunc: changed.Create, UpdateFunc: changed.Update, DeleteFunc: deleted.Delete}
}

// AddAfter adds requests to the queue after a delay.
func AddAfter(q Queue, delay time.Duration, requests []ctrl.Request) {
	for _, request := range requests {
		q.AddAfter(request, delay)
	}
}

// first is the priority of requests added by EnqueueFirst, last of those added by AddLast. Due is that of requests for
// the ends of decisions: thousands may end at once, so they come behind new decisions. All others have priority 0, or
// the low priority of the initial list. In a queue of NewFairQueue they order the requests of a namespace.
const (
	first = 100
	Due   = 50
	last  = handler.LowPriority
)

// AddLast adds requests to the queue after a delay, behind all others; in a queue of NewFairQueue, of their namespace.
func AddLast(q Queue, delay time.Duration, requests []ctrl.Request) {
	add(q, priorityqueue.AddOpts{After: delay, Priority: new(last)}, requests)
}

// add adds requests to the queue, which may have no priorities.
func add(q Queue, options priorityqueue.AddOpts, requests []ctrl.Request) {
	if priorities, ok := q.(priorityqueue.PriorityQueue[ctrl.Request]); ok {
		priorities.AddWithOpts(options, requests...)
		return
	}
	AddAfter(q, options.After, requests)
}

// Many is the number of requests for one change above which AddChanged adds them last. A decision in a pull request
// affects fewer objects.
const Many = 300

// AddChanged adds the requests for the objects that one change affects: behind all others if they are many, so that
// imports and decisions do not wait for them. They are served once the queue holds no others, or, in a queue of
// NewFairQueue, no others of their namespace.
func AddChanged(q Queue, requests []ctrl.Request) {
	if len(requests) > Many {
		AddLast(q, 0, requests)
		return
	}
	AddAfter(q, 0, requests)
}

// EnqueueFirst enqueues the changed object ahead of all others, or, in a queue of NewFairQueue, of those of its
// namespace. Use it for changes that a user waits for.
func EnqueueFirst() handler.EventHandler {
	return Changes(func(_ context.Context, change Change, q Queue) {
		add(q, priorityqueue.AddOpts{Priority: new(first)}, Itself(change.Object()))
	})
}

// EnqueueIndexed enqueues the objects of the list's kind that the index field maps to the name of the changed object.
// It lists them Later.
func EnqueueIndexed(c client.Reader, list client.ObjectList, field string) handler.EventHandler {
	return Changes(Later(func(ctx context.Context, change Change, q Queue) {
		object := change.Object()
		AddAfter(q, 0, List(ctx, c, list,
			client.InNamespace(object.GetNamespace()), client.MatchingFields{field: object.GetName()}))
	}))
}

// List returns requests for the objects of the list's kind that the options select from the cache.
func List(ctx context.Context, c client.Reader, kind client.ObjectList, options ...client.ListOption) []ctrl.Request {
	list := kind.DeepCopyObject().(client.ObjectList)
	var requests []ctrl.Request
	err := c.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			requests = append(requests, Itself(item.(client.Object))...)
			return nil
		})
	}
	LogError(ctx, err, "list what is to be reconciled")
	return requests
}

// LogError logs the error of a cached list in a handler, if any. A handler cannot return it, and the list fails only
// while the manager stops.
func LogError(ctx context.Context, err error, tried string, details ...any) {
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, tried, details...)
	}
}

// Change is a change reported by a watch.
type Change struct {
	// Before is nil for an object that was created, After for one that was deleted.
	Before, After client.Object
	// Initial is true for objects that existed at the start, when every object is reconciled anyway.
	Initial bool
}

// Object returns the newest known state of the changed object.
func (c Change) Object() client.Object {
	return cmp.Or(c.After, c.Before)
}

// Changes calls the function with every change.
func Changes(changed func(context.Context, Change, Queue)) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q Queue) {
			changed(ctx, Change{After: e.Object, Initial: e.IsInInitialList}, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q Queue) {
			changed(ctx, Change{Before: e.ObjectOld, After: e.ObjectNew}, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q Queue) {
			changed(ctx, Change{Before: e.Object}, q)
		},
	}
}
