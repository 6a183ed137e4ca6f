package ledger

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// owes is the cache index of the objects that may owe a delivery.
const owes = "owes"

// Index values of an object that owes a delivery; owesForCause is followed by the cause.
const (
	owesAnything = "anything"
	owesDecision = "decision"
	owesForCause = "cause/"
)

func (l *Ledger) owedBy(object client.Object) []string {
	owed := l.kind.book(object).history().Owed()
	if len(owed) == 0 {
		return nil
	}
	values := []string{owesAnything}
	if slices.ContainsFunc(owed, func(t v1alpha1.Transition) bool { return webhooks.IsSingleDecision(t.Type, t.By) }) {
		values = append(values, owesDecision)
	}
	if l.kind.paged {
		for _, c := range causesOf(owed) {
			values = append(values, owesForCause+c.String())
		}
	}
	return values
}

// Endpoints enqueues the namespace's objects that owe deliveries when an endpoint is created, deleted or changed,
// or has caught up with its backlog.
func (l *Ledger) Endpoints() handler.EventHandler {
	return onEndpoints(func(ctx context.Context, namespace string, what unblocked) []reconcile.Request {
		if what == decisions {
			return l.owing(ctx, namespace, owesDecision)
		}
		owing := l.owing(ctx, namespace, owesAnything)
		for _, name := range l.Implied.Owing(namespace) {
			owing = append(owing, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}})
		}
		return owing
	})
}

// Pages enqueues the findings in a page, once the page exists.
func (l *Ledger) Pages() handler.EventHandler {
	return handler.Funcs{CreateFunc: func(_ context.Context, e event.CreateEvent, q watch.Queue) {
		if e.IsInInitialList {
			return // at startup every object is reconciled anyway
		}
		for _, entry := range webhooks.Covered(e.Object.(*v1alpha1.WebhookDelivery)) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: e.Object.GetNamespace(), Name: entry.FindingID}})
		}
	}}
}

// ScansGone enqueues the findings that wait for pages of a deleted scan, which are no longer made.
func (l *Ledger) ScansGone() handler.EventHandler { return l.causesGone(scanKind) }

// OperationsGone does the same for an operation.
func (l *Ledger) OperationsGone() handler.EventHandler { return l.causesGone(operationKind) }

func (l *Ledger) causesGone(kind string) handler.EventHandler {
	return watch.Changes(func(ctx context.Context, change watch.Change, q watch.Queue) {
		gone := change.Before
		// The object may have been deleted and created again between two events.
		if gone == nil || change.After != nil && change.After.GetUID() == gone.GetUID() {
			return
		}
		watch.AddChanged(q, l.owing(ctx, gone.GetNamespace(), owesForCause+cause{kind, gone.GetName()}.String()))
	})
}

func (l *Ledger) owing(ctx context.Context, namespace, value string) []reconcile.Request {
	return watch.List(ctx, l.client, l.kind.list, client.InNamespace(namespace), client.MatchingFields{owes: value})
}

// unblocked is what may become deliveries after a change of an endpoint.
type unblocked int

const (
	nothing unblocked = iota
	// decisions means only decisions about single objects, while a backlog still holds back everything else.
	decisions
	everything
)

// onEndpoints enqueues the concerned objects when a change of an endpoint may allow new deliveries. It lists them with
// watch.Later, which keeps only the newest change of an endpoint while another list is made. So decisions and
// everything have a function each: one must not replace the other.
func onEndpoints(
	concerned func(ctx context.Context, namespace string, what unblocked) []reconcile.Request) handler.EventHandler {
	later := map[unblocked]func(context.Context, watch.Change, watch.Queue){}
	for _, what := range []unblocked{decisions, everything} {
		later[what] = watch.Later(func(ctx context.Context, change watch.Change, q watch.Queue) {
			watch.AddChanged(q, concerned(ctx, change.Object().GetNamespace(), what))
		})
	}
	return watch.Changes(func(ctx context.Context, change watch.Change, q watch.Queue) {
		before, existed := change.Before.(*v1alpha1.WebhookEndpoint)
		after, exists := change.After.(*v1alpha1.WebhookEndpoint)
		what := everything
		if existed && exists {
			what = unblocks(before, after)
		}
		if change.Initial || what == nothing {
			return
		}
		later[what](ctx, change, q)
	})
}

// unblocks ignores what the sender records in an endpoint's status after each attempt. The endpoint may have been
// deleted and created again between two events: then pages for the former one are no longer made.
func unblocks(before, after *v1alpha1.WebhookEndpoint) unblocked {
	switch {
	case before.UID != after.UID,
		before.Generation != after.Generation,
		webhooks.Enabled(before) != webhooks.Enabled(after),
		webhooks.Backlogged(before) && !webhooks.Backlogged(after):
		return everything
	case webhooks.HoldsDecisionsBack(before) && !webhooks.HoldsDecisionsBack(after):
		return decisions
	}
	return nothing
}
