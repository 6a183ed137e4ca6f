package webhookdelivery

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/safely"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// endpointIndex is the cache index of deliveries by the name of their endpoint.
const endpointIndex = "endpoint"

// concernsDeliveries selects changes of an endpoint's secrets and of whether it can be sent to. It ignores the results
// of deliveries in the endpoint's status.
var concernsDeliveries = watch.Updates(func(before, after *v1alpha1.WebhookEndpoint) bool {
	return before.Generation != after.Generation || before.UID != after.UID ||
		(before.DisabledByControllers() == nil) != (after.DisabledByControllers() == nil) ||
		!equality.Semantic.DeepEqual(before.Status.SecretRef, after.Status.SecretRef) ||
		!slices.EqualFunc(before.Status.Secrets, after.Status.Secrets, sameSecret)
})

// enqueueDeliveries enqueues the deliveries of a changed endpoint. Those that may be sent now are treated like new
// ones, unless they are many; all others go behind those of other endpoints of the namespace, since hundreds of
// thousands may be kept for verification.
func (r *Reconciler) enqueueDeliveries() handler.EventHandler {
	return watch.Changes(watch.Later(func(ctx context.Context, change watch.Change, q watch.Queue) {
		endpoint, isEndpoint := change.Object().(*v1alpha1.WebhookEndpoint)
		if !isEndpoint {
			return
		}
		list := &v1alpha1.WebhookDeliveryList{}
		err := index.List(ctx, r.Client, list, endpoint.Namespace, endpointIndex, endpoint.Name)
		watch.LogError(ctx, err, "list the deliveries of a changed endpoint")
		sends := change.After != nil && webhooks.Enabled(endpoint)
		var soon, last []reconcile.Request
		for i := range list.Items {
			request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}
			if sends && list.Items[i].Status.Phase == v1alpha1.WebhookDeliveryPending {
				soon = append(soon, request)
			} else {
				last = append(last, request)
			}
		}
		watch.AddChanged(q, soon)
		watch.AddLast(q, 0, last)
	}))
}

// sameSecret compares field by field: equality.Semantic panics at the unexported fields of an instant.
func sameSecret(a, b v1alpha1.WebhookSecretStatus) bool {
	return a.ID == b.ID && a.ExpiresAt.Equal(b.ExpiresAt)
}

// worthReconciling ignores status writes, and selects requests for redelivery.
var worthReconciling = predicate.Or(watch.SpecChanged, redeliveryAsked)

// redeliveryAsked selects deliveries with a new request for redelivery.
var redeliveryAsked = predicate.NewPredicateFuncs(func(object client.Object) bool {
	delivery, isDelivery := object.(*v1alpha1.WebhookDelivery)
	return isDelivery && webhooks.RedeliveryAsked(delivery) != ""
})

// enqueueEnded enqueues each delivery whose attempt has ended: it may be due again, or wait for something else. The
// delay is longer after an error, or if the cache was behind: it may stay so for a minute, and each attempt meanwhile
// would read from the API server in vain. It is called before the first reconcile, and so before the first attempt.
func (r *Reconciler) enqueueEnded(_ context.Context, q watch.Queue) error {
	r.dispatcher.done = func(ctx context.Context, delivery types.NamespacedName, err error) {
		rest := settleDelay
		if err != nil {
			rest = errorDelay
		}
		if err != nil && !errors.Is(err, errBehind) {
			log := logf.FromContext(ctx).WithValues("namespace", delivery.Namespace, "delivery", delivery.Name)
			if stack := safely.Stack(err); stack != "" {
				log = log.WithValues("stack", stack)
			}
			log.Error(err, "attempt to deliver a webhook")
		}
		// A stopping controller skips this: the next one reconciles every delivery.
		q.AddAfter(reconcile.Request{NamespacedName: delivery}, wait.Jitter(rest, 1))
	}
	return nil
}
