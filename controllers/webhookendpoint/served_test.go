package webhookendpoint

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/handlertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// There may be thousands, each of which would read its Secret every few seconds and count all others.
func TestAnEndpointThatGetsNoEventsIsNotPolled(t *testing.T) {
	start := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).WithStatusSubresource(&v1alpha1.WebhookEndpoint{}).
		WithIndex(&v1alpha1.WebhookDelivery{}, pendingIndex, func(client.Object) []string { return nil })
	for i := range webhooks.MaxServed + 1 {
		endpoint := builder.WebhookEndpoint(fmt.Sprintf("e-%02d", i)).In("org-acme").Secret("absent").Build()
		endpoint.UID = types.UID(endpoint.Name)
		endpoint.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(i) * time.Minute))
		start.WithObjects(endpoint)
	}
	c := start.Build()
	r := &Reconciler{Base: reconcile.Base{Client: c, Live: c, Recorder: events.NewFakeRecorder(10),
		Clock: clocktesting.NewFakePassiveClock(noon.Add(time.Hour))}, settings: Settings{MaxPending: DefaultMaxPending}}
	late := fmt.Sprintf("e-%02d", webhooks.MaxServed)
	for _, want := range []struct {
		name, reason string
		after        time.Duration
	}{
		{fmt.Sprintf("e-%02d", webhooks.MaxServed-1), v1alpha1.ReasonSecretNotFound, 15 * time.Second},
		{late, v1alpha1.ReasonTooManyEndpoints, reconcile.MaxWait},
		{late, v1alpha1.ReasonTooManyEndpoints, reconcile.MaxWait}, // its time without a secret has begun
	} {
		key := client.ObjectKey{Namespace: "org-acme", Name: want.name}
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		harness.Must(t, err)
		got := &v1alpha1.WebhookEndpoint{}
		harness.Must(t, c.Get(t.Context(), key, got))
		if reason := conditions.ReadyReason(got.Status.Conditions); reason != want.reason || result.RequeueAfter != want.after {
			t.Errorf("%s: %s, reconciled again after %s; want %+v", want.name, reason, result.RequeueAfter, want)
		}
	}
}

// There may be thousands, and one goroutine serves the events of all organizations.
func TestEndpointsThatComeOrGoTogetherCostOneList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint := func(i int, reason string, status metav1.ConditionStatus) v1alpha1.WebhookEndpoint {
			e := builder.WebhookEndpoint(fmt.Sprintf("e-%02d", i)).In("org-acme").Build()
			e.UID, e.CreationTimestamp = types.UID(e.Name), metav1.NewTime(noon.Add(time.Duration(i)*time.Minute))
			e.Status.Conditions = []v1alpha1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason}}
			return *e
		}
		all := make([]v1alpha1.WebhookEndpoint, webhooks.MaxServed+2)
		for i := range all {
			all[i] = endpoint(i, v1alpha1.ReasonReconciled, metav1.ConditionTrue)
		}
		within, beyond := webhooks.MaxServed-1, webhooks.MaxServed+1
		all[within] = endpoint(within, v1alpha1.ReasonTooManyEndpoints, metav1.ConditionFalse)
		all[beyond] = endpoint(beyond, v1alpha1.ReasonTooManyEndpoints, metav1.ConditionFalse)
		lists, q := 0, &handlertest.Queue{}
		r := &Reconciler{Base: reconcile.Base{Client: handlertest.Lists(func(list *v1alpha1.WebhookEndpointList) {
			lists++
			list.Items = all
		})}}
		h := r.enqueueMisjudged()
		for range 1000 {
			handlertest.Send(h, q, nil, &all[0])
			handlertest.Send(h, q, &all[0], nil)
		}
		<-time.After(2 * watch.GatherDelay)
		synctest.Wait()
		harness.Same(t, "lists", 1, lists)
		want := []string{all[within].Name + " in 0s", all[within+1].Name + " in 0s"}
		harness.Same(t, "one that is served again, and one that is not any more", want, q.Added)
	})
}
