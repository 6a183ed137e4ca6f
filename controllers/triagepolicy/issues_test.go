package triagepolicy

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// raises creates an issue with that rule and the same result as the finding; nil for no finding.
func (r room) raises(name, rule string, like *v1alpha1.Finding) *v1alpha1.ReviewIssue {
	r.t.Helper()
	return testenv.Create(r.t, env, builder.ReviewIssue(name).In(r.namespace).SeenIn("a").Mutate(func(i *v1alpha1.ReviewIssue) {
		i.Spec.Result = &v1alpha1.ReviewIssueResult{RuleID: rule}
		if like != nil {
			i.Spec.Result.Key = fingerprints.Key(&like.Spec)
		}
	}).Build())
}

func TestOfAnIssueAPersonWinsOverAPolicyAndThePolicyOverNothing(t *testing.T) {
	g, r := NewWithT(t), running(t)
	pull := testenv.Create(t, env, builder.Review("review").In(r.namespace).Reviewed("a", time.Now()).Build())
	issue, other := r.raises("i-1", "G1", nil), r.raises("i-2", "G2", nil)
	is := func(reason string, person v1alpha1.UserStatus, policy string, muted, confirmed int32) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			testenv.Get(t, g, env, issue)
			got := ""
			if v := issue.Status.Verdict; v != nil {
				got = string(v.Policy)
			}
			g.Expect([]any{issue.Status.UserStatus, got}).To(Equal([]any{person, policy}), reason)
			s := testenv.Get(t, g, env, pull).Status
			g.Expect([]int32{s.OpenIssueCount, s.OpenMutedCount, s.OpenConfirmedCount}).To(Equal([]int32{2, muted, confirmed}), reason)
		})
	}
	is("nobody", v1alpha1.UserStatusOpen, "", 0, 0)
	policy := r.declares("mute", "finding.ruleID == 'G1' && repository.name == 'repo' && project.name == ''", nil)
	is("a policy", v1alpha1.UserStatusOpen, "mute", 1, 0)
	g.Expect(issue.Status.Verdict.By).To(Equal(testenv.Get(t, g, env, policy).Spec.By), "the verdict names the policy's author")
	g.Expect(issue.Spec.Triage.UserStatus).To(Equal(v1alpha1.UserStatusOpen), "the policy wrote a person's decision")
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"active"}}}`)
	is("a person", v1alpha1.UserStatusActive, "", 0, 1)
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"open"}}}`)
	is("the person took it back", v1alpha1.UserStatusOpen, "mute", 1, 0)
	harness.Must(t, env.Client.Delete(t.Context(), policy))
	is("the policy is gone", v1alpha1.UserStatusOpen, "", 0, 0)
	g.Expect(testenv.Get(t, g, env, other).Status.Verdict).To(BeNil(), "the policy is about another rule")
	r.counts(r.declares("again", "finding.ruleID == 'G1'", nil), 0, 0, 0, 0, 0, 0) // policies count findings
}

func TestADecisionInAPullRequestComesBeforeThePolicies(t *testing.T) {
	r := running(t)
	f := testenv.Create(t, env, builder.Finding("f-1").In(r.namespace).Mutate(func(f *v1alpha1.Finding) {
		f.Spec.RuleID, f.Spec.Evidence = "G1", "message.code"
	}).Build())
	policy := r.declares("mute", "finding.ruleID == 'G1'", nil)
	r.is(f, v1alpha1.FindingStateOpenMuted, "mute")
	issue := r.raises("i-1", "G1", f)
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"active"}}}`)
	r.is(f, v1alpha1.FindingStateOpen, "")
	if v := f.Status.Verdict; v == nil || v.ReviewIssue != "i-1" || v.By != issue.Spec.Triage.By {
		t.Errorf("verdict %+v, want that of the issue by %s", v, issue.Spec.Triage.By)
	}
	r.counts(policy, 1, 0, 0, 0, 1, 0)
	env.Patch(t, issue, `{"spec":{"triage":{"userStatus":"open"}}}`)
	r.is(f, v1alpha1.FindingStateOpenMuted, "mute")
	r.counts(policy, 1, 1, 0, 0, 0, 0)
}
