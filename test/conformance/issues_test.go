package conformance

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestIssues_HaveExactlyTheDocumentedMembers(t *testing.T) {
	enter(t)
	id, c := "ri-open", (*caller)(nil)
	switch issue := theDeployment.fixtures.ReviewIssue; {
	case theDeployment.cluster != nil:
		c = sampleOrganization(t).caller
	case issue != "":
		id, c = issue, anyKey(t)
	default:
		notRun(t, "needs -kubeconfig, or -fixtures with a review_issue")
	}
	wantsShape(t, "issue", c.get("/v2/issues/"+id).wants(200, "an issue").object(), reviewIssueShape)
}

func TestIssues_EveryMemberShowsItsFact(t *testing.T) {
	o := sampleOrganization(t)
	got := o.get("/v2/issues/ri-resolved").wants(200, "an issue").object()
	delete(got, "created_at")
	delete(got, "updated_at")
	want := record{
		"id": "ri-resolved", "review_id": "rv-open", "title": "Title of ri-resolved", "description": "What is wrong.", "severity": "low", "status": "resolved",
		"provider": "github", "repo_id": "full", "repo_name": "full", "repo_owner": "acme", "pr_number": 101.0,
		"file_path": "api/zip.go", "line_number": 12.0, "file_location_link": "https://github.com/acme/full/blob/sha-1/api/zip.go#L12",
		"commit_sha": "sha-1", "commit_link": "https://github.com/acme/full/commit/sha-1", "seen_in_commits": []any{"sha-1"},
		"resolved_by": "sha-2", "resolved_at": shownTime(secondReviewAt), "first_seen_at": shownTime(firstReviewAt), "last_seen_at": shownTime(firstReviewAt),
	}
	harness.Same(t, "the issue", want, got)
}

func TestIssues_AbsentValuesAreNullOrEmpty(t *testing.T) {
	o := sampleOrganization(t)
	got := o.get("/v2/issues/ri-open").wants(200, "an issue").object()
	want := map[string]any{
		"description": "", "file_path": "", "line_number": 0.0, "file_location_link": "", "commit_link": "", "resolved_by": "", "resolved_at": nil,
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
}

func TestIssues_AnIssueThatTheLastCommitShowsIsOpen(t *testing.T) {
	o := sampleOrganization(t)
	got := o.get("/v2/issues/ri-open").object()
	if got["status"] != "open" || got["last_seen_at"] != shownTime(secondReviewAt) {
		t.Errorf("status is %v, last_seen_at %v", got["status"], got["last_seen_at"])
	}
}

func TestIssues_AReviewedCommitWithoutTheIssueResolvesIt(t *testing.T) {
	o := newOrganization(t)
	review := builder.Review("rv").In(o.namespace).Reviewed("sha-1", firstReviewAt).Build()
	o.create(review, builder.ReviewIssue("ri").Review("rv").SeenIn("sha-1").In(o.namespace).Build())
	shows := func(status string, resolvedBy any) {
		t.Helper()
		harness.Eventually(t, func(g Gomega) {
			a := o.get("/v2/issues/ri")
			g.Expect(a.Status).To(Equal(200))
			g.Expect(a.object()["status"]).To(Equal(status))
			g.Expect(a.object()["resolved_by"]).To(Equal(resolvedBy))
		})
	}
	shows("open", "")
	o.patchResource(review, `{"spec":{"reviewedCommits":[{"sha":"sha-1","reviewedAt":"`+shownTime(firstReviewAt)+
		`"},{"sha":"sha-2","reviewedAt":"`+shownTime(secondReviewAt)+`"}]}}`)
	shows("resolved", "sha-2")
	if got := o.listed("/v1/reviews", "rv"); got["open_issue_count"] != 0.0 {
		harness.Eventually(t, func(g Gomega) {
			g.Expect(o.listed("/v1/reviews", "rv")["closed_issue_count"]).To(BeEquivalentTo(1))
		})
	}
}

func TestIssues_UnknownIDIs404(t *testing.T) {
	anyKey(t).get("/v2/issues/conformance-none").notFound("no such issue")
}
