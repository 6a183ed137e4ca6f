package ledger

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/implied"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// A namespace may have thousands of endpoints, and an import settles thousands of findings.
func TestEndpointsAreListedOncePerObject(t *testing.T) {
	now := time.Now()
	lists := 0
	cache := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).
		WithObjects(builder.WebhookEndpoint("all").In("org-a").Build()).
		WithIndex(&v1alpha1.WebhookDelivery{}, covers, func(client.Object) []string { return nil }).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, into client.ObjectList,
			options ...client.ListOption) error {
			if _, are := into.(*v1alpha1.WebhookEndpointList); are {
				lists++
			}
			return c.List(ctx, into, options...)
		}}).Build()
	l := &Ledger{kind: Finding, store: store{
		client: cache, live: cache, quotas: newQuotaBackoff(clocktesting.NewFakeClock(now)), Implied: implied.NewStatuses(),
	}}
	stored := func(context.Context) (bool, error) { return true, nil }
	for what, settle := range map[string]func(context.Context, client.Object, Write) (time.Duration, error){
		"stored": l.StoreAndEmit, "derivable": l.EmitAndStore,
	} {
		finding := builder.Finding(what).In("org-a").Build()
		finding.UID, finding.CreationTimestamp = types.UID(what), metav1.NewTime(now)
		finding.Status.Transitions = []v1alpha1.Transition{{Seq: 1, Type: v1alpha1.TransitionCreated, At: v1alpha1.NewTime(now)}}
		harness.Must(t, cache.Create(t.Context(), finding))
		lists = 0
		_, err := settle(t.Context(), finding, stored)
		harness.Must(t, err)
		made := &v1alpha1.WebhookDeliveryList{}
		harness.Must(t, cache.List(t.Context(), made))
		harness.Same(t, what+": lists of endpoints", 1, lists)
		harness.Same(t, what+": deliveries", 1, len(made.Items))
		harness.Must(t, cache.DeleteAllOf(t.Context(), &v1alpha1.WebhookDelivery{}, client.InNamespace("org-a")))
	}
}

// A cluster's own webhook chooses the reason of its denial.
func TestADeliveryThatAWebhookDeniesStaysOwed(t *testing.T) {
	now := time.Now()
	for _, reason := range []metav1.StatusReason{metav1.StatusReasonAlreadyExists, metav1.StatusReasonConflict} {
		finding := builder.Finding("f").In("org-a").Build()
		finding.UID, finding.CreationTimestamp = "f", metav1.NewTime(now)
		finding.Status.Transitions = []v1alpha1.Transition{{Seq: 1, Type: v1alpha1.TransitionCreated, At: v1alpha1.NewTime(now)}}
		cache := fake.NewClientBuilder().WithScheme(testenv.NewScheme()).
			WithObjects(builder.WebhookEndpoint("all").In("org-a").Build(), finding).
			WithIndex(&v1alpha1.WebhookDelivery{}, covers, func(client.Object) []string { return nil }).
			WithInterceptorFuncs(interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					return webhookerrors.ToStatusErr("hold.example.org", &metav1.Status{Reason: reason})
				},
			}).Build()
		harness.Must(t, cache.Get(t.Context(), client.ObjectKeyFromObject(finding), finding))
		l := &Ledger{kind: Finding, store: store{
			client: cache, live: cache, quotas: newQuotaBackoff(clocktesting.NewFakeClock(now)), Implied: implied.NewStatuses(),
		}}
		written := false
		_, err := l.EmitAndStore(t.Context(), finding, func(context.Context) (bool, error) {
			written = true
			return true, nil
		})
		harness.ErrorContains(t, string(reason), err, "denied the request")
		harness.Same(t, string(reason)+": the status is written", true, written)
		harness.Same(t, string(reason)+": emitted up to", int64(0), finding.Status.EmittedSeq)
	}
}
