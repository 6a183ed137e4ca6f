// Package handlertest sends changes to event handlers, and records what they enqueue.
package handlertest

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Queue records the additions, such as "name in 1m0s". Whatever else is asked of it fails on the nil interface.
type Queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	Added []string
}

// Add implements workqueue.TypedInterface.
func (q *Queue) Add(request reconcile.Request) { q.AddAfter(request, 0) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *Queue) AddAfter(request reconcile.Request, after time.Duration) {
	q.Added = append(q.Added, request.Name+" in "+after.String())
}

// Send sends a change to the handler. Before is nil for a new object, after for a deleted one.
func Send[O interface {
	comparable
	client.Object
}](h handler.EventHandler, q *Queue, before, after O) {
	var none O
	switch {
	case before == none:
		h.Create(context.Background(), event.CreateEvent{Object: after}, q)
	case after == none:
		h.Delete(context.Background(), event.DeleteEvent{Object: before}, q)
	default:
		h.Update(context.Background(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
	}
}

// Lists returns a client that fills lists of that kind, leaves lists of others empty, and can do nothing else.
func Lists[L client.ObjectList](fill func(list L)) client.WithWatch {
	return interceptor.NewClient(nil, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, _ ...client.ListOption) error {
			if list, ok := into.(L); ok {
				fill(list)
			}
			return nil
		},
	})
}

// Gets returns a client that reads objects with the function, and can do nothing else.
func Gets(get func(key client.ObjectKey, into client.Object) error) client.WithWatch {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			return get(key, into)
		},
	})
}

// Priority returns the highest priority of what enqueue adds, at once or soon.
func Priority(t testing.TB, enqueue func(workqueue.TypedRateLimitingInterface[reconcile.Request])) int {
	t.Helper()
	q := priorityqueue.New[reconcile.Request]("priority")
	giveUp := time.AfterFunc(harness.Patience, q.ShutDown)
	enqueue(q)
	_, priority, _ := q.GetWithPriority()
	if !giveUp.Stop() {
		t.Fatal("nothing was enqueued")
	}
	q.ShutDown()
	return priority
}
