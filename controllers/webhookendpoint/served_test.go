package webhookendpoint

import (
	"fmt"
	"testing"
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
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
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
	for _, want := range []struct {
		name, reason string
		after        time.Duration
	}{
		{fmt.Sprintf("e-%02d", webhooks.MaxServed-1), v1alpha1.ReasonSecretNotFound, secretPoll},
		{fmt.Sprintf("e-%02d", webhooks.MaxServed), v1alpha1.ReasonTooManyEndpoints, webhooks.MaxFailing},
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
