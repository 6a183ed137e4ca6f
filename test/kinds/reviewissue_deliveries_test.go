package kinds

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/reviewissue"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func emittedAll(t *testing.T, issue *v1alpha1.ReviewIssue, seq int64) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		status := testenv.Get(t, g, env, issue).Status
		g.Expect(status.Transitions).To(HaveLen(int(seq)))
		g.Expect(status.EmittedSeq).To(Equal(seq))
	})
}

func TestAnIssueIsResolvedAndOpenedAgainAndTellsSo(t *testing.T) {
	stop := controllertest.Start(t, env, reviewissue.SetupWithManager)
	ns := env.Namespace(t)
	endpoint := builder.WebhookEndpoint("issues").In(ns).Events("review_issue.opened", "review_issue.resolved").Build()
	review := builder.Review("review").In(ns).Reviewed("a", at(0)).Build()
	issue := builder.ReviewIssue("i-1").In(ns).SeenIn("a").Build()
	env.Create(t, endpoint, review, issue)
	emittedAll(t, issue, 1)
	wantStatus(t, issue, v1alpha1.ReviewIssueOpen, "", 0, 0)
	opened := issue.Status.UpdatedAt
	env.Patch(t, review, reviewedTwice)
	emittedAll(t, issue, 2)
	wantStatus(t, issue, v1alpha1.ReviewIssueResolved, "b", 0, 0)
	NewWithT(t).Expect(issue.Status.UpdatedAt.Before(opened)).To(BeFalse(), "updatedAt went back")
	env.Patch(t, issue, `{"spec":{"seenInCommits":["a","b"]}}`)
	emittedAll(t, issue, 3)
	wantStatus(t, issue, v1alpha1.ReviewIssueOpen, "", 0, 1)
	harness.Eventually(t, func(g Gomega) {
		events := testenv.List(t, g, env, &eventsv1.EventList{}, client.InNamespace(ns))
		var reasons []string
		for _, e := range events.Items {
			reasons = append(reasons, e.Reason)
		}
		g.Expect(reasons).To(ConsistOf("Resolved", "Reopened"))
	})

	want := map[string]string{
		webhooks.DeliveryName(issue.UID, 1, endpoint.UID): "review_issue.opened",
		webhooks.DeliveryName(issue.UID, 2, endpoint.UID): "review_issue.resolved",
		webhooks.DeliveryName(issue.UID, 3, endpoint.UID): "review_issue.opened",
	}
	g := NewWithT(t)
	g.Expect(controllertest.Deliveries(t, env, g, ns)).To(Equal(want))
	second := builder.WebhookDelivery(webhooks.DeliveryName(issue.UID, 2, endpoint.UID), time.Time{}).In(ns).Build()
	g.Expect(testenv.Get(t, g, env, second).Spec.Payload).To(ContainSubstring(`"state":{"from":"open","to":"resolved"},"resolved_by":"b"`))

	// The controller dies after it has made the last two deliveries, before it has recorded that.
	stop()
	c := env.AsController(t)
	g.Expect(c.Status().Patch(t.Context(), issue, testenv.MergePatch(`{"status":{"emittedSeq":1}}`))).To(Succeed())
	controllertest.Start(t, env, reviewissue.SetupWithManager)
	emittedAll(t, issue, 3)
	g.Expect(controllertest.Deliveries(t, env, g, ns)).To(Equal(want))
	again := testenv.Get(t, g, env, second.DeepCopy())
	g.Expect(again.UID).To(Equal(second.UID), "it was made anew")
}
