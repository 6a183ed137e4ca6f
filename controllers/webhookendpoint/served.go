package webhookendpoint

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// isServed reports whether the endpoint is among those of its namespace that get events.
func (r *Reconciler) isServed(ctx context.Context, endpoint *v1alpha1.WebhookEndpoint) (bool, error) {
	all, err := ledger.EndpointsOf(ctx, r.Client, endpoint.Namespace)
	return webhooks.IsServed(endpoint, all), err
}

// enqueueMisjudged enqueues the endpoints of a namespace whose condition is outdated after one was created or deleted.
func (r *Reconciler) enqueueMisjudged() handler.EventHandler {
	return watch.Changes(watch.Gathered(watch.GatherDelay, func(ctx context.Context, change watch.Change, q watch.Queue) {
		watch.AddAfter(q, 0, r.misjudged(ctx, change.Object().GetNamespace()))
	}))
}

// misjudged returns requests for the endpoints of the namespace whose condition is outdated after one was created or
// deleted.
func (r *Reconciler) misjudged(ctx context.Context, namespace string) (requests []ctrl.Request) {
	all, err := ledger.EndpointsOf(ctx, r.Client, namespace)
	watch.LogError(ctx, err, "list what is to be reconciled")
	served := map[types.UID]bool{}
	for _, endpoint := range webhooks.Served(all) {
		served[endpoint.UID] = true
	}
	for i := range all {
		list := all[i].Status.Conditions
		outdated := v1alpha1.IsConditionTrue(list, v1alpha1.ConditionReady)
		if served[all[i].UID] {
			outdated = conditions.ReadyReason(list) == v1alpha1.ReasonTooManyEndpoints
		}
		if outdated {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&all[i])})
		}
	}
	return requests
}
