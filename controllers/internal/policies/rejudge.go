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

// rejudging bounds how many organizations the process looks at at a time: each holds a list of its findings.
var rejudging = semaphore.NewWeighted(8)

// Subject is what a change concerns within a namespace. Changes of one subject are looked at together.
type Subject func(client.Object) string

// WholeNamespace is for objects that concern all of it.
func WholeNamespace(client.Object) string { return "" }

// EachObject is for objects that concern only what refers to them. A handler is of one kind.
func EachObject(object client.Object) string { return object.GetName() }

// Rejudge enqueues what the function finds to be decided otherwise once an object has changed, or once it is time for a
// policy, until the context ends. It does so beside the watch: to evaluate a hundred policies over many findings takes
// long, and other organizations' events go on meanwhile. An organization's subjects wait for each other.
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
				// The cache answers, or the manager is about to stop; there is nobody to return an error to.
				ctrl.LoggerFrom(ctx).Error(err, "find what is decided otherwise", "namespace", object.GetNamespace())
			}
			watch.AddAfter(q, 0, requests)
		})
	}
	changes := watch.Changes(func(_ context.Context, change watch.Change, q watch.Queue) {
		begin(change.Object(), q)
	}).(handler.Funcs)
	changes.GenericFunc = func(_ context.Context, e event.GenericEvent, q watch.Queue) { begin(e.Object, q) }
	return changes
}

// backlog has what is still to be looked at, by namespace. A namespace is in it while a goroutine works on it.
type backlog struct {
	mu      sync.Mutex
	waiting map[string]*line
}

// line has the subjects of a namespace in the order in which they changed first, each once.
type line struct {
	subjects []string
	objects  map[string]client.Object
}

// add reports whether nobody works on the namespace yet.
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

// next takes the next object of the namespace; nil if there is none, and then nobody works on it any longer.
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
			return // the process ends
		}
		look(object)
		rejudging.Release(1)
	}
}
