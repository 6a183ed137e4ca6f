package watch

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/internal/safely"
)

// Subject returns a key for what a change affects within a namespace. Changes with the same key are handled together.
type Subject func(client.Object) string

var (
	// lists holds the work of all handlers of Later. Policies have another one, because evaluating them takes long.
	lists = NewBacklog()
	// listing bounds how many lists Later and Gathered make at the same time, since each holds the objects of a namespace.
	listing = semaphore.NewWeighted(8)
)

// Later returns a function that takes changes, and calls enqueue for the newest change of each object, in a separate
// goroutine per namespace. Use it, usually with Changes, where enqueue lists objects of the namespace: there may be
// many, and a handler runs in the goroutine that serves the kind's events of all organizations. Changes of an object
// that arrive while others of the namespace are handled cost one call.
func Later(enqueue func(context.Context, Change, Queue)) func(context.Context, Change, Queue) {
	return lists.later(client.Object.GetName, func(ctx context.Context, change Change, q Queue) {
		bounded(ctx, change, func() { enqueue(ctx, change, q) })
	})
}

// Gathered is like Later, but calls enqueue once for all changes in a namespace within that time, with the first of
// them. Use it where the list does not depend on which object has changed.
func Gathered(within time.Duration,
	enqueue func(context.Context, Change, Queue)) func(context.Context, Change, Queue) {
	var gathering sync.Map // by namespace
	return func(ctx context.Context, change Change, q Queue) {
		namespace := change.Object().GetNamespace()
		if _, already := gathering.LoadOrStore(namespace, true); already {
			return
		}
		ctx = context.WithoutCancel(ctx) // the event's context ends with its handler
		time.AfterFunc(within, func() {
			bounded(ctx, change, func() {
				gathering.Delete(namespace) // first, because later changes must not rely on this list
				enqueue(ctx, change, q)
			})
		})
	}
}

// bounded calls list once few enough others run. A panic ends only this call.
func bounded(ctx context.Context, change Change, list func()) {
	if listing.Acquire(ctx, 1) != nil {
		return // never, because the context does not end
	}
	defer listing.Release(1)
	err := safely.Func(func() error {
		list()
		return nil
	})()
	LogError(ctx, err, "list what is to be reconciled", "namespace", change.Object().GetNamespace(),
		"stack", safely.Stack(err))
}

// Backlog holds pending work by namespace. A namespace is in it while a goroutine works on it.
type Backlog struct {
	mu      sync.Mutex
	waiting map[string]*line
}

// NewBacklog returns a Backlog. It does the work of an organization one at a time, for all handlers together.
func NewBacklog() *Backlog { return &Backlog{waiting: map[string]*line{}} }

// Handler returns a handler that calls handle with the newest change of each subject, in a separate goroutine, and with
// a context that does not end. A change that gives the object another subject is also handled for the previous one, as
// if the object had been deleted.
func (b *Backlog) Handler(of Subject, handle func(context.Context, Change, Queue)) handler.EventHandler {
	begin := b.later(of, handle)
	changes := Changes(func(ctx context.Context, change Change, q Queue) {
		if change.Before != nil && change.After != nil && of(change.Before) != of(change.After) {
			begin(ctx, Change{Before: change.Before}, q)
		}
		begin(ctx, change, q)
	}).(handler.Funcs)
	changes.GenericFunc = func(ctx context.Context, e event.GenericEvent, q Queue) {
		begin(ctx, Change{After: e.Object}, q)
	}
	return changes
}

// later returns a function that has handle called with the newest change of each subject.
func (b *Backlog) later(of Subject, handle func(context.Context, Change, Queue)) func(context.Context, Change, Queue) {
	return func(ctx context.Context, change Change, q Queue) {
		ctx = context.WithoutCancel(ctx) // the event's context ends with its handler
		object := change.Object()
		b.begin(object.GetNamespace(), subject{handler: &of, of: of(object)}, func() { handle(ctx, change, q) })
	}
}

// line holds the work of a namespace: the newest per subject, in the order of the subjects' first changes.
type line struct {
	subjects []subject
	work     map[subject]func()
}

// subject is the key that a handler, identified by its address, gives to what a change affects.
type subject struct {
	handler *Subject
	of      string
}

// begin queues the work, and starts a goroutine unless one works on the namespace already.
func (b *Backlog) begin(namespace string, s subject, work func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, working := b.waiting[namespace]
	if !working {
		l = &line{work: map[subject]func(){}}
		b.waiting[namespace] = l
		go b.work(namespace)
	}
	if l.work[s] == nil {
		l.subjects = append(l.subjects, s)
	}
	l.work[s] = work
}

// next takes the next work of the namespace. If there is none, it removes the namespace and returns nil: the goroutine
// must stop.
func (b *Backlog) next(namespace string) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.waiting[namespace]
	if len(l.subjects) == 0 {
		delete(b.waiting, namespace)
		return nil
	}
	s := l.subjects[0]
	work := l.work[s]
	l.subjects = l.subjects[1:]
	delete(l.work, s)
	return work
}

func (b *Backlog) work(namespace string) {
	for work := b.next(namespace); work != nil; work = b.next(namespace) {
		work()
	}
}
