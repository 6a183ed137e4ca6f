package webhookendpoint

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// backlogDelay gathers what happens to an endpoint's deliveries: the queue keeps one entry of an
// endpoint, so that there is one look for all that happens meanwhile.
const backlogDelay = time.Second

// pendingIndex is the cache index of the deliveries that wait by the name of their endpoint.
const pendingIndex = "pending"

func pendingFor(object client.Object) []string {
	delivery := object.(*v1alpha1.WebhookDelivery)
	if !isPending(delivery) {
		return nil
	}
	return []string{string(delivery.Spec.EndpointRef.Name)}
}

func isPending(delivery *v1alpha1.WebhookDelivery) bool {
	phase := delivery.Status.Phase
	return phase == "" || phase == v1alpha1.WebhookDeliveryPending
}

// changesBacklog lets through the deliveries that begin to wait or cease to.
var changesBacklog = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList && pends(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool { return pends(e.ObjectOld) != pends(e.ObjectNew) },
	DeleteFunc: func(e event.DeleteEvent) bool { return pends(e.Object) },
}

func pends(object client.Object) bool {
	delivery, isDelivery := object.(*v1alpha1.WebhookDelivery)
	return isDelivery && isPending(delivery)
}

// endpointsOf wakes the endpoint of a delivery, a little later.
var endpointsOf = handler.Funcs{
	CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		lookLater(e.Object, q)
	},
	UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		lookLater(e.ObjectNew, q)
	},
	DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		lookLater(e.Object, q)
	},
}

func lookLater(object client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if delivery, isDelivery := object.(*v1alpha1.WebhookDelivery); isDelivery {
		name := string(delivery.Spec.EndpointRef.Name)
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: delivery.Namespace, Name: name}}, backlogDelay)
	}
}

// backlog is what waits for an endpoint.
type backlog struct {
	pending int
	// oldest is since when the oldest of them waits; zero where nothing does.
	oldest time.Time
}

// lookAtBacklog takes from the deliveries that wait what the status says of them.
func (r *Reconciler) lookAtBacklog(ctx context.Context, s *scope) error {
	waiting := &v1alpha1.WebhookDeliveryList{}
	if err := r.client.List(ctx, waiting, client.InNamespace(s.endpoint.Namespace),
		client.MatchingFields{pendingIndex: s.endpoint.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the deliveries that wait: %w", err)
	}
	b := measure(s.endpoint, waiting.Items)
	theBacklog.note(client.ObjectKeyFromObject(s.endpoint), b, s.endpoint.IsDisabled())
	setBacklogged(s.endpoint, b.pending, r.settings.MaxPending, s.now)
	return nil
}

// measure leaves out what waits for an earlier endpoint of the name. It changes nothing in the
// deliveries, which are the cache's.
func measure(endpoint *v1alpha1.WebhookEndpoint, waiting []v1alpha1.WebhookDelivery) backlog {
	var b backlog
	for i := range waiting {
		delivery := &waiting[i]
		if uid := delivery.Spec.EndpointRef.UID; uid != "" && uid != string(endpoint.UID) {
			continue
		}
		b.pending++
		if since := waitsSince(delivery); b.oldest.IsZero() || since.Before(b.oldest) {
			b.oldest = since
		}
	}
	return b
}

func waitsSince(delivery *v1alpha1.WebhookDelivery) time.Time {
	if redelivery := delivery.Status.Redelivery; redelivery != nil {
		return redelivery.At.Time
	}
	return delivery.CreationTimestamp.Time
}

// setBacklogged opens the circuit above the bound and closes it below half of it: in between it
// stays as it is, so that it does not flap.
func setBacklogged(endpoint *v1alpha1.WebhookEndpoint, pending, bound int, now time.Time) {
	list := &endpoint.Status.Conditions
	backlogged := v1alpha1.IsConditionTrue(*list, v1alpha1.ConditionBacklogged)
	switch {
	case pending > bound:
		backlogged = true
	case 2*pending < bound:
		backlogged = false
	}
	if !backlogged {
		v1alpha1.RemoveCondition(list, v1alpha1.ConditionBacklogged)
		return
	}
	v1alpha1.SetCondition(list, v1alpha1.Condition{
		Type: v1alpha1.ConditionBacklogged, Status: metav1.ConditionTrue, ObservedGeneration: endpoint.Generation,
		LastTransitionTime: v1alpha1.NewTime(now), Reason: v1alpha1.ReasonTooManyPending,
		Message: "More deliveries wait than the operator's --webhook-max-pending allows, and no more are made until less than half as many do. " +
			"What happens meanwhile is recorded, and sent then: see to it that the receiver answers, or delete the WebhookDeliveries that are of no use to it.",
	})
}
