package conformance

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestIssues_HaveExactlyTheDocumentedMembers(t *testing.T) {
	issue := theDeployment.fixtures.ReviewIssue
	wantsShape(t, "issue", existing(t, "review_issue", "/v2/issues/ri-open", issue, "/v2/issues/"+issue), reviewIssueShape)
}

func TestIssues_EveryMemberShowsItsFact(t *testing.T) {
	o := sampleOrganization(t)
	got := o.get("/v2/issues/ri-resolved").wants(200, "an issue").object()
	want := record{
		"id": "ri-resolved", "review_id": "rv-open", "title": "Title of ri-resolved", "description": "What is wrong.", "severity": "low", "status": "resolved",
		"provider": "github", "repo_id": "full", "repo_name": "full", "repo_owner": "acme", "pr_number": 101.0,
		"file_path": "api/zip.go", "line_number": 12.0, "file_location_link": "https://github.com/acme/full/blob/sha-1/api/zip.go#L12",
		"commit_sha": "sha-1", "commit_link": "https://github.com/acme/full/commit/sha-1", "seen_in_commits": []any{"sha-1"},
		"resolved_by": "sha-2", "resolved_at": shownTime(secondReviewAt), "first_seen_at": shownTime(firstReviewAt), "last_seen_at": shownTime(firstReviewAt),
	}
	wantsFacts(t, "the issue", want, got, "created_at", "updated_at")
}

func TestIssues_AbsentValuesAreNullOrEmpty(t *testing.T) {
	o := sampleOrganization(t)
	got := o.get("/v2/issues/ri-open").wants(200, "an issue").object()
	want := map[string]any{
		"description": "", "file_path": "", "line_number": 0.0, "file_location_link": "", "commit_link": "", "resolved_by": "", "resolved_at": nil,
	}
	wantsMembers(t, "the issue", want, got)
}

func TestIssues_AnIssueThatTheLastCommitShowsIsOpen(t *testing.T) {
	o := sampleOrganization(t)
	got := o.get("/v2/issues/ri-open").object()
	wantsMembers(t, "the issue", record{"status": "open", "last_seen_at": shownTime(secondReviewAt)}, got)
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
			g.Expect(o.find("/v1/reviews", "rv")["closed_issue_count"]).To(BeEquivalentTo(1))
		})
	}
}

func TestIssues_UnknownIDIs404(t *testing.T) {
	anyKey(t).get("/v2/issues/conformance-none").notFound("no such issue")
}
