package policies

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

// rejudging bounds how many organizations are rejudged at the same time: each holds a list of its findings.
var rejudging = semaphore.NewWeighted(8)

// Subject returns a key for what a change concerns within a namespace. Changes with the same key are
// handled together.
type Subject func(client.Object) string

// WholeNamespace is for objects that concern the whole namespace.
func WholeNamespace(client.Object) string { return "" }

// EachObject is for objects that concern only the objects that refer to them. A handler serves one
// kind, so the name is enough.
func EachObject(object client.Object) string { return object.GetName() }

// Rejudge enqueues the requests that find returns after an object has changed or a Ticker has fired, until the context
// ends. It does so in a separate goroutine: evaluating a hundred policies over many findings takes long, and must not
// delay the events of other organizations. An organization's subjects are handled one after the other. A change that
// gives the object another subject concerns the previous one too.
func Rejudge(ctx context.Context, of Subject,
	find func(context.Context, client.Object) ([]ctrl.Request, error)) handler.EventHandler {
	changed := &backlog{waiting: map[string]*line{}}
	begin := func(object client.Object, q watch.Queue) {
		if !changed.add(of(object), object) {
			return
		}
		go changed.work(ctx, object.GetNamespace(), func(object client.Object) {
			requests, err := find(ctx, object)
			if err != nil {
				// A cached list fails only while the manager stops, and a handler cannot return an error.
				ctrl.LoggerFrom(ctx).Error(err, "find what is decided otherwise", "namespace", object.GetNamespace())
			}
			watch.AddAfter(q, 0, requests)
		})
	}
	changes := watch.Changes(func(_ context.Context, change watch.Change, q watch.Queue) {
		if change.Before != nil && change.After != nil && of(change.Before) != of(change.After) {
			begin(change.Before, q)
		}
		begin(change.Object(), q)
	}).(handler.Funcs)
	changes.GenericFunc = func(_ context.Context, e event.GenericEvent, q watch.Queue) { begin(e.Object, q) }
	return changes
}

// backlog holds the objects still to be handled, by namespace. A namespace is in it while a goroutine works on
// it.
type backlog struct {
	mu      sync.Mutex
	waiting map[string]*line
}

// line holds the subjects of a namespace in the order of their first change, without duplicates.
type line struct {
	subjects []string
	objects  map[string]client.Object
}

// add queues the object. It reports whether no goroutine works on the namespace yet.
func (b *backlog) add(subject string, object client.Object) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, working := b.waiting[object.GetNamespace()]
	if !working {
		l = &line{objects: map[string]client.Object{}}
		b.waiting[object.GetNamespace()] = l
	}
	if l.objects[subject] == nil {
		l.subjects = append(l.subjects, subject)
	}
	l.objects[subject] = object
	return !working
}

// next takes the next object of the namespace. It returns nil if there is none, and removes the namespace:
// the goroutine must stop.
func (b *backlog) next(namespace string) client.Object {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.waiting[namespace]
	if len(l.subjects) == 0 {
		delete(b.waiting, namespace)
		return nil
	}
	subject := l.subjects[0]
	object := l.objects[subject]
	l.subjects = l.subjects[1:]
	delete(l.objects, subject)
	return object
}

func (b *backlog) work(ctx context.Context, namespace string, look func(client.Object)) {
	for object := b.next(namespace); object != nil; object = b.next(namespace) {
		if rejudging.Acquire(ctx, 1) != nil {
			return // the process is stopping
		}
		look(object)
		rejudging.Release(1)
	}
}
