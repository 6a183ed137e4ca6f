package kinds

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/review"
	"github.com/appsec-dev/findings-operator/controllers/reviewissue"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/controllertest"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestADecisionAboutAnIssueIsRecordedAndCountedAndEnds(t *testing.T) {
	controllertest.Start(t, env, reviewissue.SetupWithManager, review.Settings{}.SetupWithManager)
	ns := env.Namespace(t)
	issue, pull := builder.ReviewIssue("i-1").In(ns).SeenIn("a").Build(), builder.Review("review").In(ns).Reviewed("a", at(0)).Build()
	env.Create(t, builder.Repository("repo").In(ns).Build(), pull, issue)
	wantStatus(t, issue, v1alpha1.ReviewIssueOpen, "", 0, 0)
	NewWithT(t).Expect(issue.Status.UserStatus).To(Equal(v1alpha1.UserStatusOpen))

	decided := func(status v1alpha1.UserStatus, last v1alpha1.TransitionType, want reviewstate.Counts) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			got := testenv.Get(t, g, env, issue).Status
			g.Expect(got.UserStatus).To(Equal(status))
			g.Expect(got.State).To(Equal(v1alpha1.ReviewIssueOpen), "a decision resolves nothing")
			newest := got.Transitions[len(got.Transitions)-1]
			g.Expect(newest.Type).To(Equal(last))
			g.Expect(newest.By).To(Equal(issue.Spec.Triage.By))
			g.Expect(got.EmittedSeq).To(Equal(newest.Seq), "no deliveries are owed")
		})
		counted(t, pull, want)
	}
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"muted","reason":"accepted-risk","by":"somebody"}}}`)
	decided(v1alpha1.UserStatusMuted, v1alpha1.TransitionTriaged, reviewstate.Counts{Open: 1, OpenLow: 1, OpenMuted: 1})
	NewWithT(t).Expect(issue.Spec.Triage.By).NotTo(Or(BeEmpty(), Equal("somebody")), "the API server signs")
	end := time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339)
	env.Patch(t, issue, `{"spec":{"triage":{"expiresAt":"`+end+`"}}}`)
	declared := issue.Spec.Triage
	decided(v1alpha1.UserStatusOpen, v1alpha1.TransitionExpired, reviewstate.Counts{Open: 1, OpenLow: 1})
	NewWithT(t).Expect(issue.Spec.Triage).To(Equal(declared), "the spec stays as the person wrote it")

	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"active"}}}`)
	decided(v1alpha1.UserStatusActive, v1alpha1.TransitionTriaged, reviewstate.Counts{Open: 1, OpenLow: 1, OpenConfirmed: 1})
	NewWithT(t).Expect(issue.Spec.Triage.ExpiresAt).To(BeNil(), "another decision comes without the end of the one before")
}
