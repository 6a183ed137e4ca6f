package conformance

import (
	"testing"
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
		"status": "open", "last_seen_at": shownTime(secondReviewAt), // the last commit shows it
	}
	wantsMembers(t, "the issue", want, got)
}
