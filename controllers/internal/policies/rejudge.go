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
	"github.com/appsec-dev/findings-operator/internal/safely"
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

// Find returns requests for the objects whose verdict differs since the given object has changed.
type Find func(ctx context.Context, object client.Object) ([]ctrl.Request, error)

// Rejudge enqueues the requests that find returns after an object has changed or a Ticker has fired, until the context
// ends. It does so in a separate goroutine: evaluating a hundred policies over many findings takes long, and must not
// delay the events of other organizations. An organization's subjects, of all handlers, are handled one after the
// other. A change that gives the object another subject concerns the previous one too.
func Rejudge(ctx context.Context, of Subject, find Find) handler.EventHandler {
	return evaluations.handler(of, func(object client.Object, q watch.Queue) {
		if rejudging.Acquire(ctx, 1) != nil {
			return // the process is stopping
		}
		defer rejudging.Release(1)
		enqueue(ctx, q, object, find)
	})
}

// RejudgeFew does the same where a subject concerns few objects, such as the result that a person decides about in a
// pull request: it does not wait for the evaluations.
func RejudgeFew(ctx context.Context, of Subject, find Find) handler.EventHandler {
	return decisions.handler(of, func(object client.Object, q watch.Queue) { enqueue(ctx, q, object, find) })
}

func (b *backlog) handler(of Subject, handle func(client.Object, watch.Queue)) handler.EventHandler {
	begin := func(object client.Object, q watch.Queue) {
		b.begin(object.GetNamespace(), subject{handler: &of, of: of(object)}, func() { handle(object, q) })
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

// enqueue adds what find returns to the queue.
func enqueue(ctx context.Context, q watch.Queue, object client.Object, find Find) {
	var requests []ctrl.Request
	err := safely.Func(func() (err error) {
		requests, err = find(ctx, object)
		return err
	})()
	watch.LogError(ctx, err, "find the objects whose verdict has changed", "namespace", object.GetNamespace(),
		"stack", safely.Stack(err))
	watch.AddChanged(q, requests)
}

// The work still to be done. All handlers of Rejudge share evaluations, so that an organization occupies only one slot
// of rejudging.
var evaluations, decisions = newBacklog(), newBacklog()

// backlog holds the work still to be done, by namespace. A namespace is in it while a goroutine works on it.
type backlog struct {
	mu      sync.Mutex
	waiting map[string]*line
}

func newBacklog() *backlog { return &backlog{waiting: map[string]*line{}} }

// line holds the work of a namespace: the newest of each subject, in the order of the subjects' first changes.
type line struct {
	subjects []subject
	work     map[subject]func()
}

// subject is the key that a handler, identified by its address, gives to what a change concerns.
type subject struct {
	handler *Subject
	of      string
}

// begin queues the work, and begins it if no goroutine works on the namespace yet.
func (b *backlog) begin(namespace string, s subject, work func()) {
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

// next takes the next work of the namespace. It returns nil if there is none, and removes the namespace: the goroutine
// must stop.
func (b *backlog) next(namespace string) func() {
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

func (b *backlog) work(namespace string) {
	for work := b.next(namespace); work != nil; work = b.next(namespace) {
		work()
	}
}
