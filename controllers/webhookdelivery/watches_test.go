package webhookdelivery

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
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

// reconcileQueue reconciles what is added to it.
type reconcileQueue struct {
	watch.Queue
	reconcile func(reconcile.Request)
}

func (q *reconcileQueue) AddAfter(request reconcile.Request, pause time.Duration) {
	time.AfterFunc(pause, func() { q.reconcile(request) })
}

// While the API server restarts, hundreds of such attempts would load it and keep their endpoints busy.
func TestWhileTheCacheIsBehindFewAttemptsAreMade(t *testing.T) {
	for reason, change := range map[string]func(*v1alpha1.WebhookDelivery){
		"it was delivered": func(d *v1alpha1.WebhookDelivery) {
			webhooks.AddAttempt(&d.Status, v1alpha1.WebhookAttempt{At: *at(0), Outcome: v1alpha1.WebhookAttemptSucceeded})
		},
		"another controller has begun an attempt": func(d *v1alpha1.WebhookDelivery) {
			webhooks.AddAttempt(&d.Status, v1alpha1.WebhookAttempt{At: *at(0), Outcome: v1alpha1.WebhookAttemptStarted})
		},
		"it is being deleted": func(d *v1alpha1.WebhookDelivery) { d.DeletionTimestamp = &metav1.Time{Time: noon} },
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			attempts := 0
			reads := func(stored func(*v1alpha1.WebhookDelivery)) client.WithWatch {
				return handlertest.Gets(func(_ client.ObjectKey, into client.Object) error {
					switch into := into.(type) {
					case *v1alpha1.WebhookDelivery:
						builder.WebhookDelivery("d-1", noon).Build().DeepCopyInto(into)
						stored(into)
					case *v1alpha1.WebhookEndpoint:
						builder.WebhookEndpoint("endpoint").Build().DeepCopyInto(into)
						into.Status.SecretRef = &v1alpha1.SecretReference{Name: "endpoint"}
					}
					return nil
				})
			}
			r := &Reconciler{dispatcher: newDispatcher(roomy, clock.RealClock{})}
			r.Clock, r.Client = clock.RealClock{}, reads(func(*v1alpha1.WebhookDelivery) {})
			r.Live = reads(func(d *v1alpha1.WebhookDelivery) {
				attempts++
				change(d)
			})
			r.dispatcher.work = r.attempt
			q := &reconcileQueue{reconcile: func(request reconcile.Request) {
				if ctx.Err() == nil {
					_, err := r.Reconcile(ctx, request)
					harness.NoError(t, reason, err)
				}
			}}
			harness.Must(t, r.enqueueEnded(ctx, q))
			ended := make(chan error)
			go func() { ended <- r.dispatcher.Start(ctx) }()
			synctest.Wait()
			q.reconcile(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "org-acme", Name: "d-1"}})
			harness.Pause(ctx, time.Minute)
			stop()
			harness.Must(t, <-ended)
			if attempts < 2 || attempts > 15 {
				t.Errorf("%s: %d attempts in a minute", reason, attempts)
			}
		})
	}
}
