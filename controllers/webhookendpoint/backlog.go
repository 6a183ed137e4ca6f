package webhookendpoint

import (
	"cmp"
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
)

// pendingIndex is the cache index of pending deliveries by the name of their endpoint.
const pendingIndex = "pending"

func pendingFor(delivery *v1alpha1.WebhookDelivery) []string {
	if !isPending(delivery) {
		return nil
	}
	return []string{string(index.EndpointOf(delivery))}
}

func isPending(delivery *v1alpha1.WebhookDelivery) bool {
	phase := delivery.Status.Phase
	return phase == "" || phase == v1alpha1.WebhookDeliveryPending
}

// changesBacklog selects deliveries that become pending or cease to be.
var changesBacklog = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return pends(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool { return pends(e.ObjectOld) != pends(e.ObjectNew) },
	DeleteFunc: func(e event.DeleteEvent) bool { return pends(e.Object) },
}

func pends(object client.Object) bool {
	delivery, isDelivery := object.(*v1alpha1.WebhookDelivery)
	return isDelivery && isPending(delivery)
}

// backlog summarizes the pending deliveries of an endpoint.
type backlog struct {
	pending int
	// oldest is when the oldest of them became pending; zero if there are none.
	oldest time.Time
}

// observeBacklog records the backlog of pending deliveries.
func (r *Reconciler) observeBacklog(ctx context.Context, s *scope) error {
	waiting := &v1alpha1.WebhookDeliveryList{}
	if err := index.List(ctx, r.Client, waiting, s.Object.Namespace, pendingIndex, s.Object.Name); err != nil {
		return err
	}
	b := measure(s.Object, waiting.Items)
	theBacklog.note(client.ObjectKeyFromObject(s.Object), b, s.Object.IsDisabled())
	setBacklogged(s, b.pending, r.settings.MaxPending)
	return nil
}

// measure computes the backlog. It ignores deliveries for an earlier endpoint of the same name. The deliveries belong
// to the cache and must not be changed.
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

// backlogReason returns the reason of the condition Backlogged; "" for no condition. before is its current reason. The
// condition begins above the bound and ends below half the bound; in between it stays, so that it does not flap. Above
// twice the bound even decisions do not become deliveries, until the backlog is back at the bound.
func backlogReason(before string, pending, bound int) string {
	switch {
	case 2*pending < bound:
		return ""
	case pending > 2*bound:
		return v1alpha1.ReasonDecisionsHeldBack
	case pending > bound:
		return cmp.Or(before, v1alpha1.ReasonTooManyPending)
	case before != "":
		return v1alpha1.ReasonTooManyPending
	default:
		return ""
	}
}

// setBacklogged sets or removes the condition.
func setBacklogged(s *scope, pending, bound int) {
	list := &s.Status.Conditions
	var before string
	if condition := v1alpha1.FindCondition(*list, v1alpha1.ConditionBacklogged); condition != nil {
		before = condition.Reason
	}
	switch reason := backlogReason(before, pending, bound); reason {
	case "":
		v1alpha1.RemoveCondition(list, v1alpha1.ConditionBacklogged)
	case v1alpha1.ReasonDecisionsHeldBack:
		s.Condition(v1alpha1.ConditionBacklogged, true, reason,
			"More than twice as many deliveries are pending as the operator's --webhook-max-pending allows. "+
				"Until no more are than it allows, not even single decisions become deliveries; what is held back is sent later, "+
				"unless the endpoint is disabled meanwhile. "+whatToDo)
	default:
		s.Condition(v1alpha1.ConditionBacklogged, true, v1alpha1.ReasonTooManyPending,
			"More deliveries are pending than the operator's --webhook-max-pending allows. "+
				"Until fewer than half as many are, only single decisions become deliveries; what is held back is sent later, "+
				"unless the endpoint is disabled meanwhile. "+whatToDo)
	}
}

const whatToDo = "Make the receiver answer, or have a cluster administrator delete WebhookDeliveries from before the " +
	"backlog that it does not need."
