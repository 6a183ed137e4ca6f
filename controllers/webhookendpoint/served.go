package webhookendpoint

import (
	"context"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// isServed reports whether the endpoint is one of those of its namespace that get events.
func (r *Reconciler) isServed(ctx context.Context, endpoint *v1alpha1.WebhookEndpoint) (bool, error) {
	served, _, err := r.split(ctx, endpoint.Namespace)
	return slices.ContainsFunc(served, func(e v1alpha1.WebhookEndpoint) bool { return e.UID == endpoint.UID }), err
}

// misjudged returns requests for the endpoints whose condition is outdated after one in their namespace was created or
// deleted.
func (r *Reconciler) misjudged(ctx context.Context, changed client.Object) (requests []ctrl.Request) {
	served, unserved, err := r.split(ctx, changed.GetNamespace())
	if err != nil {
		// A cached list fails only while the manager stops, and a handler cannot return an error.
		ctrl.LoggerFrom(ctx).Error(err, "list what is to be reconciled")
	}
	add := func(endpoints []v1alpha1.WebhookEndpoint, outdated func([]v1alpha1.Condition) bool) {
		for i := range endpoints {
			if outdated(endpoints[i].Status.Conditions) {
				requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&endpoints[i])})
			}
		}
	}
	add(served, func(list []v1alpha1.Condition) bool {
		return conditions.ReadyReason(list) == v1alpha1.ReasonTooManyEndpoints
	})
	add(unserved, func(list []v1alpha1.Condition) bool { return v1alpha1.IsConditionTrue(list, v1alpha1.ConditionReady) })
	return requests
}

// split returns the namespace's endpoints that get events, and the others.
func (r *Reconciler) split(ctx context.Context, namespace string) (served, unserved []v1alpha1.WebhookEndpoint,
	err error) {
	list := &v1alpha1.WebhookEndpointList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list the webhook endpoints: %w", err)
	}
	served = webhooks.Served(list.Items)
	return served, list.Items[len(served):], nil
}
