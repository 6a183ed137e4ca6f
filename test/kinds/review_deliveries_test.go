package kinds

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/review"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// updates returns the deliveries of the review's transitions up to seq, as controllertest.Deliveries does.
func updates(review *v1alpha1.Review, endpoint *v1alpha1.WebhookEndpoint, seq int64) map[string]string {
	out := map[string]string{}
	for n := int64(1); n <= seq; n++ {
		out[webhooks.DeliveryName(review.UID, n, endpoint.UID)] = "review.updated"
	}
	return out
}

// emitted waits until that many transitions are recorded, and those up to seq emitted.
func emitted(t *testing.T, review *v1alpha1.Review, recorded int, seq int64) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		status := testenv.Get(t, g, env, review).Status
		g.Expect(status.Transitions).To(HaveLen(recorded))
		g.Expect(status.EmittedSeq).To(Equal(seq))
	})
}

func TestChangesAreSentAndCountedEachOnce(t *testing.T) {
	// The cache shows no issue of commit b until that time.
	var lagsUntil atomic.Pointer[time.Time]
	lagsUntil.Store(&time.Time{})
	controllertest.Start(t, env, controllertest.Intercept(review.Settings{}.SetupWithManager, interceptor.Funcs{List: func(
		ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
		err := c.List(ctx, into, options...)
		if issues, are := into.(*v1alpha1.ReviewIssueList); are && time.Now().Before(*lagsUntil.Load()) {
			for i := range issues.Items {
				issues.Items[i].Spec.SeenInCommits = []v1alpha1.CommitSHA{"a"}
			}
		}
		return err
	}}))
	ns := env.Namespace(t)
	endpoint := builder.WebhookEndpoint("all").In(ns).Build()
	env.Create(t, builder.Repository("repo").In(ns).Build(), endpoint)
	review := testenv.Create(t, env, builder.Review("review").In(ns).Reviewed("a", at(0)).Build())
	emitted(t, review, 1, 1)
	env.Patch(t, review, `{"spec":{"prStatus":"merged"}}`)
	emitted(t, review, 2, 2)
	env.Create(t, builder.ReviewIssue("i-1").In(ns).SeenIn("a").Build())
	counted(t, review, reviewstate.Counts{Open: 1, OpenLow: 1})
	emitted(t, review, 3, 3)
	g := NewWithT(t)
	g.Expect(controllertest.Deliveries(t, env, g, ns)).To(Equal(updates(review, endpoint, 3)))

	name := webhooks.DeliveryName(review.UID, 3, endpoint.UID)
	delivery := testenv.Get(t, g, env, builder.WebhookDelivery(name, time.Time{}).In(ns).Build())
	g.Expect(delivery.Spec.Payload).To(ContainSubstring(`"pr_status":{"from":"merged","to":"merged"},"issues":{"closed_issue_count":0,"open_issue_count":1,`))

	// Neither a label nor the controller's own writes are a change.
	env.Patch(t, review, `{"metadata":{"labels":{"team":"red"}}}`)
	env.Create(t, builder.Review("marker").In(ns).PullRequest("repo", 2).Build())
	marker := builder.Review("marker").In(ns).Build()
	emitted(t, marker, 1, 1)
	g.Expect(testenv.Get(t, g, env, review).Status.Transitions).To(HaveLen(3))

	lagsUntil.Store(new(time.Now().Add(500 * time.Millisecond)))
	env.Patch(t, builder.ReviewIssue("i-1").In(ns).Build(), `{"spec":{"seenInCommits":["a","b"]}}`)
	env.Patch(t, review, `{"spec":{"reviewedCommits":[{"sha":"a","reviewedAt":"2026-01-02T03:04:05Z"},{"sha":"b","reviewedAt":"2026-01-02T03:04:06Z"}]}}`)
	counted(t, review, reviewstate.Counts{Open: 1, OpenLow: 1})
	emitted(t, review, 4, 4)
}

// backlogged creates a repository and an endpoint with a backlog.
func backlogged(t *testing.T, ns string) *v1alpha1.WebhookEndpoint {
	t.Helper()
	endpoint := builder.WebhookEndpoint("slow").In(ns).Events("review.*").Build()
	env.Create(t, builder.Repository("repo").In(ns).Build(), endpoint)
	controllertest.SetBacklogged(t, env, endpoint, v1alpha1.ReasonTooManyPending)
	return endpoint
}

func TestOwedDeliveriesAreCreatedWhenTheBacklogEnds(t *testing.T) {
	controllertest.Start(t, env, review.Settings{}.SetupWithManager)
	ns := env.Namespace(t)
	endpoint := backlogged(t, ns)
	review := testenv.Create(t, env, builder.Review("review").In(ns).Build())
	emitted(t, review, 1, 0)
	env.Patch(t, review, `{"spec":{"prStatus":"closed"}}`)
	emitted(t, review, 2, 0)
	controllertest.AwaitLastRequeue(t)
	g := NewWithT(t)
	g.Expect(controllertest.Deliveries(t, env, g, ns)).To(BeEmpty())

	controllertest.SetBacklogged(t, env, endpoint, "")
	emitted(t, review, 2, 2)
	g.Expect(controllertest.Deliveries(t, env, g, ns)).To(Equal(updates(review, endpoint, 2)))
}

// refuseFirst refuses the first delivery of each object, as an API server does that has just started.
func refuseFirst() interceptor.Funcs {
	var refused sync.Map
	return interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, object client.Object,
		options ...client.CreateOption) error {
		if delivery, is := object.(*v1alpha1.WebhookDelivery); is {
			if _, again := refused.LoadOrStore(delivery.Spec.Event.Subject, true); !again {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "webhookdeliveries"}, delivery.Name,
					errors.New("not yet ready to handle request"))
			}
		}
		return c.Create(ctx, object, options...)
	}}
}

// Without issues there is only one reconcile before the review is deleted, with issues there are
// several.
func TestAReviewThatIsRemovedEmitsWhatItOwes(t *testing.T) {
	stop := controllertest.Start(t, env, review.Settings{}.SetupWithManager)
	ns := env.Namespace(t)
	endpoint := backlogged(t, ns)
	bare, full := builder.Review("bare").In(ns).PullRequest("repo", 2).Build(), builder.Review("review").In(ns).Build()
	env.Create(t, bare, full, builder.ReviewIssue("i-1").In(ns).Build())
	harness.Eventually(t, func(g Gomega) {
		g.Expect(testenv.Get(t, g, env, full).Status.OpenIssueCount).To(BeEquivalentTo(1))
		g.Expect(testenv.Get(t, g, env, bare).Status.Transitions).NotTo(BeEmpty())
	})
	want := updates(bare, endpoint, int64(len(bare.Status.Transitions)))
	maps.Copy(want, updates(full, endpoint, int64(len(full.Status.Transitions))))
	stop()
	g := NewWithT(t)
	for _, review := range []*v1alpha1.Review{bare, full} {
		g.Expect(review.Finalizers).NotTo(BeEmpty())
		g.Expect(env.Client.Delete(t.Context(), review)).To(Succeed())
	}
	controllertest.SetBacklogged(t, env, endpoint, "")
	controllertest.Start(t, env, controllertest.Intercept(review.Settings{}.SetupWithManager, refuseFirst()))
	env.AwaitGone(t, bare, full)
	g.Expect(controllertest.Deliveries(t, env, g, ns)).To(Equal(want), "and its removal is no event")
}

func TestABacklogDoesNotHoldAReviewThatIsRemoved(t *testing.T) {
	controllertest.Start(t, env, review.Settings{}.SetupWithManager)
	ns := env.Namespace(t)
	backlogged(t, ns)
	review := testenv.Create(t, env, builder.Review("review").In(ns).Build())
	emitted(t, review, 1, 0)
	g := NewWithT(t)
	g.Expect(env.Client.Delete(t.Context(), review)).To(Succeed())
	env.AwaitGone(t, review)
	g.Expect(controllertest.Deliveries(t, env, g, ns)).To(BeEmpty())
}
