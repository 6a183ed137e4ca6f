package ledger

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// owes is the cache index of the objects that owe a delivery, as far as is known.
const owes = "owes"

// The values under which the index keeps an object that owes; of a scan its name follows.
const (
	owesAnything = "anything"
	owesForScan  = "scan/"
)

func (l *Ledger) owedBy(object client.Object) []string {
	owed := l.kind.Book(object).history().Owed()
	if len(owed) == 0 {
		return nil
	}
	values := []string{owesAnything}
	if l.kind.Paged {
		for _, scan := range scansOf(owed) {
			values = append(values, owesForScan+scan)
		}
	}
	return values
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Endpoints wakes what owes in the namespace when an endpoint comes, goes, changes, or has
// caught up with its backlog.
func (l *Ledger) Endpoints() handler.EventHandler {
	return onEndpoints(func(ctx context.Context, namespace string, q queue) { l.wake(ctx, namespace, owesAnything, q) })
}

// Pages wakes what a page covers, once the page is there.
func (l *Ledger) Pages() handler.EventHandler {
	return handler.Funcs{CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
		if e.IsInInitialList {
			return // At the start everything is reconciled on its own account.
		}
		for _, entry := range webhooks.Covered(e.Object.(*v1alpha1.WebhookDelivery)) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: e.Object.GetNamespace(), Name: entry.FindingID}})
		}
	}}
}

// ScansGone wakes what waits for the pages of a scan when there is nobody any longer to make them.
func (l *Ledger) ScansGone() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
		l.wake(ctx, e.Object.GetNamespace(), owesForScan+e.Object.GetName(), q)
	}}
}

func (l *Ledger) wake(ctx context.Context, namespace, value string, q queue) {
	list := l.kind.List.DeepCopyObject().(client.ObjectList)
	err := l.client.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{owes: value}, client.UnsafeDisableDeepCopy)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(item.(client.Object))})
			return nil
		})
	}
	if err != nil {
		// The cache answers or the manager is on its way out; there is nobody to give an error to.
		ctrl.LoggerFrom(ctx).Error(err, "list what owes deliveries", "kind", l.kind.Name, "namespace", namespace)
	}
}

// onEndpoints calls wake for what may be made now and could not before.
func onEndpoints(wake func(ctx context.Context, namespace string, q queue)) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				wake(ctx, e.Object.GetNamespace(), q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if asksAnew(e.ObjectOld.(*v1alpha1.WebhookEndpoint), e.ObjectNew.(*v1alpha1.WebhookEndpoint)) {
				wake(ctx, e.ObjectNew.GetNamespace(), q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			wake(ctx, e.Object.GetNamespace(), q)
		},
	}
}

// asksAnew passes over what the sender notes in an endpoint's status after each attempt.
func asksAnew(before, after *v1alpha1.WebhookEndpoint) bool {
	return before.Generation != after.Generation ||
		webhooks.Enabled(before) != webhooks.Enabled(after) ||
		webhooks.Backlogged(before) && !webhooks.Backlogged(after)
}
