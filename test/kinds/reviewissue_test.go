package kinds

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/reviewissue"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// wantStatus waits for the state and the fields derived with it.
func wantStatus(t *testing.T, issue *v1alpha1.ReviewIssue, state v1alpha1.ReviewIssueState, resolvedBy string, firstSeen, lastSeen int) {
	t.Helper()
	harness.Eventually(t, func(g Gomega) {
		status := testenv.Get(t, g, env, issue).Status
		g.Expect(status.ObservedGeneration).To(Equal(issue.Generation))
		g.Expect(status.State).To(Equal(state))
		g.Expect(status.ResolvedBy).To(Equal(resolvedBy))
		g.Expect(status.ResolvedAt != nil).To(Equal(resolvedBy != ""), "resolvedAt goes with resolvedBy")
		g.Expect(status.FirstSeenAt.UTC()).To(Equal(at(firstSeen)))
		g.Expect(status.LastSeenAt.UTC()).To(Equal(at(lastSeen)))
		g.Expect(v1alpha1.IsConditionTrue(status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
	})
}

const reviewedTwice = `{"spec":{"reviewedCommits":[{"sha":"a","reviewedAt":"2026-03-01T12:00:00Z"},{"sha":"b","reviewedAt":"2026-03-01T12:01:00Z"}]}}`

func TestAnIssueWaitsForItsReviewAndKeepsItsStateWithoutIt(t *testing.T) {
	controllertest.Start(t, env, reviewissue.SetupWithManager)
	ns := env.Namespace(t)
	issue := testenv.Create(t, env, builder.ReviewIssue("i-1").In(ns).SeenIn("a").Build())
	missing := func(g Gomega) {
		ready := testenv.Ready(t, g, env, issue)
		g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonReviewNotFound))
		g.Expect(ready.Message).To(ContainSubstring(`"review"`))
	}
	harness.Eventually(t, missing)
	NewWithT(t).Expect(issue.Status.State).To(Equal(v1alpha1.ReviewIssueOpen))

	review := testenv.Create(t, env, builder.Review("review").In(ns).Reviewed("a", at(0)).Reviewed("b", at(1)).Build())
	wantStatus(t, issue, v1alpha1.ReviewIssueResolved, "b", 0, 0)

	NewWithT(t).Expect(env.Client.Delete(t.Context(), review)).To(Succeed())
	harness.Eventually(t, missing)
	NewWithT(t).Expect(issue.Status.State).To(Equal(v1alpha1.ReviewIssueResolved), "it opened because its review has gone")
}

// A change of either spec causes one status write, and a review's new title causes none.
func TestOneWritePerChangeAndNoneWithoutAChange(t *testing.T) {
	controllertest.Start(t, env, reviewissue.SetupWithManager)
	ns := env.Namespace(t)
	review := builder.Review("review").In(ns).Reviewed("a", at(0)).Build()
	issue := builder.ReviewIssue("i-1").In(ns).SeenIn("a").Build()
	env.Create(t, review, issue)
	wantStatus(t, issue, v1alpha1.ReviewIssueOpen, "", 0, 0)

	g := NewWithT(t)
	writes := testenv.Writes[*v1alpha1.ReviewIssue](t, env, &v1alpha1.ReviewIssueList{}, ns)

	env.Patch(t, review, `{"spec":{"prTitle":"Another"}}`)
	env.Patch(t, review, reviewedTwice)
	wantStatus(t, issue, v1alpha1.ReviewIssueResolved, "b", 0, 0)
	env.Patch(t, review, `{"spec":{"prTitle":"A third"}}`)
	elsewhere := env.Namespace(t)
	marker := builder.ReviewIssue("i-1").In(elsewhere).SeenIn("a").Build()
	env.Create(t, builder.Review("review").In(elsewhere).Reviewed("a", at(0)).Build(), marker)
	wantStatus(t, marker, v1alpha1.ReviewIssueOpen, "", 0, 0) // so what was queued before it has been reconciled
	env.Patch(t, issue, `{"metadata":{"labels":{"last":"true"}}}`)
	last := func(written *v1alpha1.ReviewIssue) bool { return written.Labels["last"] == "true" }
	g.Expect(testenv.CountWrites(writes, last)).To(Equal(1))
}
