package kinds

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/review"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// counted waits until the review's status is up to date and has these counters.
func counted(t *testing.T, review *v1alpha1.Review, want reviewstate.Counts) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		status := testenv.Get(t, g, env, review).Status
		g.Expect(reviewstate.CountsOf(&status)).To(Equal(want))
		g.Expect(status.ObservedGeneration).To(Equal(review.Generation))
	})
}

func TestCountersFollowTheIssuesAndTheReviewedCommits(t *testing.T) {
	controllertest.Start(t, env, review.Settings{}.SetupWithManager)
	ns := env.Namespace(t)
	review := builder.Review("review").In(ns).Reviewed("a", at(0)).Build()
	high := builder.ReviewIssue("i-high").In(ns).Severity(v1alpha1.LevelHigh).SeenIn("a").Build()
	env.Create(t, builder.Repository("repo").In(ns).Build(), review, high,
		builder.ReviewIssue("i-medium").In(ns).Severity(v1alpha1.LevelMedium).SeenIn("a", "b").Build(),
		builder.ReviewIssue("i-low").In(ns).SeenIn("a").Build(),
		builder.ReviewIssue("i-other").In(ns).Review("other").SeenIn("a").Build())
	counted(t, review, reviewstate.Counts{Open: 3, OpenHigh: 1, OpenMedium: 1, OpenLow: 1})
	g := NewWithT(t)
	g.Expect(review.Status.LastReviewAt.UTC()).To(Equal(at(0)))
	g.Expect(v1alpha1.IsConditionTrue(review.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())

	env.Patch(t, review, `{"spec":{"reviewedCommits":[{"sha":"a","reviewedAt":"2026-03-01T12:00:00Z"},{"sha":"b","reviewedAt":"2026-03-01T12:01:00Z"}]}}`)
	counted(t, review, reviewstate.Counts{Closed: 2, Open: 1, OpenMedium: 1})
	g.Expect(review.Status.LastReviewAt.UTC()).To(Equal(at(1)))

	env.Patch(t, high, `{"spec":{"seenInCommits":["a","b"]}}`)
	counted(t, review, reviewstate.Counts{Closed: 1, Open: 2, OpenHigh: 1, OpenMedium: 1})
	g.Expect(env.Client.Delete(t.Context(), high)).To(Succeed())
	counted(t, review, reviewstate.Counts{Closed: 1, Open: 1, OpenMedium: 1})
}

// A printer column shows a blank for a counter that is not stored.
func TestCountersOfNothingAreStored(t *testing.T) {
	controllertest.Start(t, env, review.Settings{}.SetupWithManager)
	ns := env.Namespace(t)
	review := testenv.Create(t, env, builder.Review("review").In(ns).Build())
	counted(t, review, reviewstate.Counts{})
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Review"))
	stored.SetNamespace(ns)
	stored.SetName(review.Name)
	testenv.Get(t, NewWithT(t), env, stored)
	status, _, _ := unstructured.NestedMap(stored.Object, "status")
	for _, counter := range []string{"closedIssueCount", "openIssueCount", "openHighCount", "openMediumCount", "openLowCount"} {
		NewWithT(t).Expect(status).To(HaveKeyWithValue(counter, int64(0)))
	}
}

func TestAReviewWaitsForItsRepository(t *testing.T) {
	controllertest.Start(t, env, review.Settings{}.SetupWithManager)
	ns := env.Namespace(t)
	review := testenv.Create(t, env, builder.Review("review").In(ns).Build())
	ready := testenv.AwaitReason(t, env, review, v1alpha1.ReasonRepositoryNotFound)
	NewWithT(t).Expect(ready.Message).To(ContainSubstring(`"repo"`))
	env.Create(t, builder.Repository("repo").In(ns).Build())
	testenv.AwaitReason(t, env, review, v1alpha1.ReasonReconciled)
}
