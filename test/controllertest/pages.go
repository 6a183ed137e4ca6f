package controllertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// Names returns that many names of findings, sorted.
func Names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("f-%03d", i)
	}
	return names
}

// AwaitAllEmitted waits until no finding of the namespace has transitions left to emit.
func AwaitAllEmitted(t *testing.T, env *testenv.Environment, namespace string) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		list := testenv.List(t, g, env, &v1alpha1.FindingList{}, client.InNamespace(namespace))
		owing := 0
		for i := range list.Items {
			status := &list.Items[i].Status
			if n := len(status.Transitions); n == 0 || status.Transitions[n-1].Seq > status.EmittedSeq {
				owing++
			}
		}
		g.Expect(owing).To(BeZero(), "findings that still owe")
	})
}

// AwaitLastRequeue waits until an object that owes deliveries was requeued for the last time, soon after it began to
// owe: only a watch enqueues it after that.
func AwaitLastRequeue(t *testing.T) {
	t.Helper()
	harness.Pause(t.Context(), 3*time.Second)
}

// Deliveries returns the event types of the namespace's deliveries, by name.
func Deliveries(t *testing.T, env *testenv.Environment, g Gomega, namespace string) map[string]string {
	t.Helper()
	list := testenv.List(t, g, env, &v1alpha1.WebhookDeliveryList{}, client.InNamespace(namespace))
	out := map[string]string{}
	for i := range list.Items {
		out[list.Items[i].Name] = list.Items[i].Spec.Event.Type
	}
	return out
}

// Pages lists the namespace's pages, and all entries in them as "finding seq", sorted.
func Pages(t *testing.T, env *testenv.Environment, g Gomega, namespace string) (pages []v1alpha1.WebhookDelivery,
	entries []string) {
	t.Helper()
	list := testenv.List(t, g, env, &v1alpha1.WebhookDeliveryList{}, client.InNamespace(namespace),
		client.MatchingFields{"spec.event.type": webhooks.EventFindingBatch})
	for i := range list.Items {
		for _, entry := range webhooks.Covered(&list.Items[i]) {
			entries = append(entries, fmt.Sprintf("%s %d", entry.FindingID, entry.Seq))
		}
	}
	slices.Sort(entries)
	return list.Items, entries
}

// SingleDeliveries lists the endpoint's deliveries for single findings, not in pages, as "finding type",
// sorted.
func SingleDeliveries(t *testing.T, env *testenv.Environment, g Gomega, namespace, endpoint string) []string {
	t.Helper()
	list := testenv.List(t, g, env, &v1alpha1.WebhookDeliveryList{}, client.InNamespace(namespace),
		client.MatchingFields{"spec.endpointRef.name": endpoint})
	out := []string{}
	for i := range list.Items {
		if event := list.Items[i].Spec.Event; event.Subject.Kind == "Finding" {
			out = append(out, string(event.Subject.Name)+" "+event.Type)
		}
	}
	slices.Sort(out)
	return out
}

// SetBacklogged sets the endpoint's Backlogged condition in place of its controller, or clears it if the reason is
// empty.
func SetBacklogged(t *testing.T, env *testenv.Environment, endpoint *v1alpha1.WebhookEndpoint, reason string) {
	t.Helper()
	list := `[]`
	if reason != "" {
		list = `[{"type":"Backlogged","status":"True","reason":"` + reason + `","message":"x",` +
			`"lastTransitionTime":"2026-03-01T12:00:00Z"}]`
	}
	harness.Must(t, env.AsController(t).Status().Patch(t.Context(), endpoint,
		testenv.MergePatch(`{"status":{"conditions":`+list+`}}`)))
}

// CutOffPages wraps a setup so that the controller can create only left more pages.
func CutOffPages(setup Setup, left *atomic.Int32) Setup {
	return Intercept(setup, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, object client.Object,
		options ...client.CreateOption) error {
		delivery, is := object.(*v1alpha1.WebhookDelivery)
		if is && delivery.Spec.Event.Type == webhooks.EventFindingBatch && left.Add(-1) < 0 {
			return errors.New("the controller is cut off here")
		}
		return c.Create(ctx, object, options...)
	}})
}
