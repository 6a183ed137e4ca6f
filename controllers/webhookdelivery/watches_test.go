package webhookdelivery

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestAnEndpointConcernsItsDeliveriesWhereItsSecretsChange(t *testing.T) {
	noon := v1alpha1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	// The same instant, as another decoding may hold it.
	elsewhere := v1alpha1.Time{Time: noon.In(time.FixedZone("UTC+1", 3600))}
	later := v1alpha1.NewTime(noon.Add(time.Hour))
	endpoint := func(id string, expiresAt *v1alpha1.Time) *v1alpha1.WebhookEndpoint {
		e := builder.WebhookEndpoint("e").Build()
		e.Status.Secrets = []v1alpha1.WebhookSecretStatus{{ID: id, ExpiresAt: expiresAt}}
		return e
	}
	cases := []struct {
		reason        string
		before, after *v1alpha1.WebhookEndpoint
		want          bool
	}{
		{"nothing has changed", endpoint("a", &noon), endpoint("a", &elsewhere), false},
		{"no end is known, before and after", endpoint("a", nil), endpoint("a", nil), false},
		{"an end has become known", endpoint("a", nil), endpoint("a", &noon), true},
		{"another end", endpoint("a", &noon), endpoint("a", &later), true},
		{"another secret", endpoint("a", &noon), endpoint("b", &noon), true},
	}
	for _, c := range cases {
		harness.Same(t, c.reason, c.want, concernsDeliveries.Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}))
	}
}

// An endpoint may have hundreds of thousands of deliveries, most of them finished.
func TestAChangedEndpointsDeliveriesGoBehindOthersUnlessTheyMayBeSent(t *testing.T) {
	phases := map[string]v1alpha1.WebhookDeliveryPhase{
		"pending": v1alpha1.WebhookDeliveryPending, "delivered": v1alpha1.WebhookDeliveryDelivered, "failed": v1alpha1.WebhookDeliveryFailed,
	}
	r := &Reconciler{}
	r.Client = handlertest.Lists(func(list *v1alpha1.WebhookDeliveryList) {
		for name, phase := range phases {
			d := builder.WebhookDelivery(name, time.Now()).Build()
			d.Status.Phase = phase
			list.Items = append(list.Items, *d)
		}
	})
	h, before := r.enqueueDeliveries(), builder.WebhookEndpoint("e").Build()
	enabled := before.DeepCopy()
	enabled.ResourceVersion = "2" // an update without a change is a resync
	disabled := enabled.DeepCopy()
	disabled.Spec.Disabled = true
	for _, c := range []struct {
		reason string
		change func(watch.Queue)
		want   map[string]int
	}{
		{"another secret", func(q watch.Queue) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: enabled}, q)
		}, map[string]int{"pending": 0, "delivered": handler.LowPriority, "failed": handler.LowPriority}},
		{"disabled", func(q watch.Queue) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: disabled}, q)
		}, map[string]int{"pending": handler.LowPriority, "delivered": handler.LowPriority, "failed": handler.LowPriority}},
		{"deleted", func(q watch.Queue) {
			h.Delete(t.Context(), event.DeleteEvent{Object: before}, q)
		}, map[string]int{"pending": handler.LowPriority, "delivered": handler.LowPriority, "failed": handler.LowPriority}},
	} {
		q := priorityqueue.New[reconcile.Request]("deliveries of a changed endpoint")
		c.change(q)
		got := map[string]int{}
		for range phases {
			request, priority, _ := q.GetWithPriority()
			got[request.Name] = priority
		}
		q.ShutDown()
		harness.Same(t, fmt.Sprintf("%s: priorities", c.reason), c.want, got)
	}
}

// A backlog of thousands may become due with one change of its endpoint.
func TestManyPendingDeliveriesOfAChangedEndpointGoBehindOthers(t *testing.T) {
	for n, want := range map[int]int{watch.Many: 0, watch.Many + 1: handler.LowPriority} {
		r := &Reconciler{}
		r.Client = handlertest.Lists(func(list *v1alpha1.WebhookDeliveryList) {
			for i := range n {
				d := builder.WebhookDelivery(fmt.Sprint("d-", i), time.Now()).Build()
				d.Status.Phase = v1alpha1.WebhookDeliveryPending
				list.Items = append(list.Items, *d)
			}
		})
		created := event.CreateEvent{Object: builder.WebhookEndpoint("e").Build()}
		got := handlertest.Priority(t, func(q watch.Queue) { r.enqueueDeliveries().Create(t.Context(), created, q) })
		harness.Same(t, fmt.Sprintf("priority of %d", n), want, got)
	}
}
