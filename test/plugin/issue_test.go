package plugin_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestAnIssueOfAPullRequestIsDecidedAbout(t *testing.T) {
	o := newOrganization(t, "issues")
	issue := testenv.Create(t, env, builder.ReviewIssue("i-abcd").In(o.namespace).SeenIn("a").Build())
	triager := o.member(testenv.Triager)
	triager.findings("triage-issue", "i-abcd", "--mute", "--reason", "used-in-tests", "--comment", "Only tests").Wants("issues: 1 muted, 0 unchanged, 0 failed")
	triager.findings("triage-issue", "i-abcd", "i-abcd", "--mute").Wants("0 muted, 1 unchanged")
	harness.Must(o, env.Client.Get(t.Context(), client.ObjectKeyFromObject(issue), issue))
	want := v1alpha1.ReviewIssueTriage{
		UserStatus: v1alpha1.UserStatusMuted, Reason: v1alpha1.DecisionUsedInTests, Comments: "Only tests", By: issue.Spec.Triage.By,
	}
	if diff := cmp.Diff(want, issue.Spec.Triage); diff != "" || want.By == "" {
		t.Errorf("triage (-want +got):\n%s", diff)
	}
	triager.findings("triage-issue", "i-abcd", "--reopen").Wants("1 reopened")
	triager.findings("triage-issue", "i-abce", "--mute").Fails("Did you mean i-abcd?")
	triager.findings("triage-issue", "f-1", "--mute").Fails("f-1 looks like the name of a finding: see kubectl findings triage")
	o.member(testenv.Viewer).findings("triage-issue", "i-abcd", "--mute").Fails("forbidden", "findings-triager")
}
