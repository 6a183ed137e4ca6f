package admission_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// Decisions about an issue of a review follow the rules for a finding, but have no basis.
func TestADecisionAboutAnIssueIsSignedAndItsGroundsGoWithIt(t *testing.T) {
	c := newCast(t, "issue-decisions")
	live := applied(t, builder.ReviewIssue("i").In(c.namespace).SeenIn("abc").Build())
	ann := c.members[triager].username
	for _, step := range []struct {
		reason string
		patch  map[string]any
		want   map[string]any
	}{
		{"a forged signature is replaced", map[string]any{"userStatus": "muted", "reason": "duplicate", "expiresAt": "2026-12-31T00:00:00Z", "by": "boss"},
			map[string]any{"userStatus": "muted", "reason": "duplicate", "expiresAt": "2026-12-31T00:00:00Z", "by": ann}},
		{"and alone it is put back", map[string]any{"by": "boss"},
			map[string]any{"userStatus": "muted", "reason": "duplicate", "expiresAt": "2026-12-31T00:00:00Z", "by": ann}},
		{"reason and end go where the decision is taken back", map[string]any{"userStatus": "open"}, map[string]any{"userStatus": "open", "by": ann}},
	} {
		if err := c.decide(t, triager, live, step.patch); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		live = env.Stored(t, live)
		wantTriage(t, live, step.want)
	}
}

func TestAReasonIsRequiredToMuteAnIssueWhereTheOrganizationSaysSo(t *testing.T) {
	c := newCast(t, "issue-reasons")
	live := applied(t, builder.ReviewIssue("i").In(c.namespace).SeenIn("abc").Build())
	requireReasons(t, "issue-reasons")
	mute := triage(map[string]any{"userStatus": "muted"})
	harness.Eventually(t, func(g Gomega) {
		err := c.as(triager).Patch(t.Context(), live.DeepCopy(), client.RawPatch("application/merge-patch+json", harness.JSON(t, mute)), client.DryRunAll)
		g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		g.Expect(err).To(MatchError(ContainSubstring("requires a reason to mute a review issue")))
	})
	harness.NoError(t, "mute with a reason", c.decide(t, triager, live, map[string]any{"userStatus": "muted", "reason": "duplicate"}))
}
