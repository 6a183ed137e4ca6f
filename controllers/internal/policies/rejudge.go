package policies

import (
	"context"

	"golang.org/x/sync/semaphore"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/safely"
)

// rejudging bounds how many organizations are rejudged at the same time, since each holds a list of its findings.
var rejudging = semaphore.NewWeighted(8)

// All handlers of Rejudge share evaluations, so that an organization occupies only one slot of rejudging.
var evaluations, decisions = watch.NewBacklog(), watch.NewBacklog()

// WholeNamespace is for objects that affect the whole namespace.
func WholeNamespace(client.Object) string { return "" }

// EachObject is for objects that affect only the objects that refer to them. A handler serves one kind, so the name is
// enough.
func EachObject(object client.Object) string { return object.GetName() }

// Find returns requests for the objects whose verdict differs after a change of the given object.
type Find func(ctx context.Context, object client.Object) ([]ctrl.Request, error)

// Rejudge enqueues the requests that find returns after an object has changed or an hour has passed (see Hourly), until
// the context ends. It does so in a separate goroutine: evaluating a hundred policies over many findings takes long,
// and must not delay the events of other organizations. An organization's subjects, of all handlers, are handled one
// after the other. A change that gives the object another subject is also handled for the previous one.
func Rejudge(ctx context.Context, of watch.Subject, find Find) handler.EventHandler {
	return evaluations.Handler(of, func(_ context.Context, change watch.Change, q watch.Queue) {
		if rejudging.Acquire(ctx, 1) != nil {
			return // the process is stopping
		}
		defer rejudging.Release(1)
		enqueue(ctx, q, change.Object(), find)
	})
}

// RejudgeFew does the same for subjects that affect few objects, such as the result that a user decides about in a pull
// request: it does not wait for the evaluations.
func RejudgeFew(ctx context.Context, of watch.Subject, find Find) handler.EventHandler {
	return decisions.Handler(of, func(_ context.Context, change watch.Change, q watch.Queue) {
		enqueue(ctx, q, change.Object(), find)
	})
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
