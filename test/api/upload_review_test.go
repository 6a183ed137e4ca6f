package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

const headCommit = "1c2d3e4f5a6b7c8d"

// reviewed returns the review in an upload's answer.
func reviewed(t testing.TB, upload openapi.Upload) openapi.UploadReview {
	t.Helper()
	if upload.Status == nil || *upload.Status != openapi.ScanStatusCompleted || len(upload.Reviews) != 1 {
		t.Fatalf("the upload is %+v", upload)
	}
	return upload.Reviews[0]
}

// ofReviews returns the organization's reviews and issues from the API server.
func (o *organization) ofReviews() ([]v1alpha1.Review, []v1alpha1.ReviewIssue) {
	o.t.Helper()
	g, here := NewWithT(o.t), client.InNamespace(o.namespace)
	return testenv.List(o.t, g, env, &v1alpha1.ReviewList{}, here).Items, testenv.List(o.t, g, env, &v1alpha1.ReviewIssueList{}, here).Items
}

// The provider is not asked: what became of a pull request comes with an upload.
func TestAnUploadTellsWhatBecameOfThePullRequest(t *testing.T) {
	o, c := uploader(t)
	query := "?pull_request=7&commit=" + headCommit
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for _, step := range []struct {
		status string
		answer int
		want   v1alpha1.PullRequestStatus
	}{
		{"", http.StatusOK, "open"}, {"&pr_status=merged", http.StatusOK, "merged"}, {"&pr_status=open", http.StatusConflict, "merged"},
		{"&pr_opened_at=" + soon, http.StatusConflict, "merged"},
	} {
		c.upload(query+step.status, sarif("one")).wants(step.answer, "pr_status after "+step.status)
		if reviews, _ := o.ofReviews(); len(reviews) != 1 || reviews[0].Spec.PRStatus != step.want {
			t.Errorf("after %q stored are %+v, want %s", step.status, reviews, step.want)
		}
	}
	c.upload("?pull_request=7&commit="+headCommit[:8], sarif()).wants(http.StatusOK, "the same commit, shortened")
	if reviews, _ := o.ofReviews(); len(reviews[0].Spec.ReviewedCommits) != 1 {
		t.Errorf("reviewed are %+v, want %s alone", reviews[0].Spec.ReviewedCommits, headCommit)
	}
}

// If there is no base to compare with, the gate does not pass, and the answer says why.
func TestABaseThatWasNeverScannedIsNamedAndPassesNoGate(t *testing.T) {
	_, c := uploader(t)
	review := reviewed(t, decoded[openapi.Upload](c.upload("?ref=refs/merge-requests/3/head&fail_on=new&commit="+headCommit, sarif("one")).
		wants(http.StatusOK, "no base")))
	if diff := cmp.Diff([]string{"lint (Code)"}, review.BaseNeverScannedWith); diff != "" || *review.Gate != openapi.GateVerdictFailed {
		t.Errorf("the review is %+v", review)
	}
	harness.Contains(t, "the comment", review.Markdown, "The base was never scanned with `lint (Code)`: all its results count as new.")
	clean := reviewed(t, decoded[openapi.Upload](c.upload("?pull_request=4&fail_on=new&commit="+headCommit, sarif()).wants(http.StatusOK, "nothing found")))
	if *clean.Gate != openapi.GateVerdictPassed || clean.GateReason != "no open issue that the base does not have." {
		t.Errorf("the review is %+v", clean)
	}
}

// A scanner that crashed has not checked everything: findings that it missed would count as
// resolved.
func TestAPullRequestsScannerThatCrashedFailsTheUpload(t *testing.T) {
	o, c := uploader(t)
	crashed := strings.Replace(sarif("one"), `"results"`, `"invocations":[{"executionSuccessful":false}],"results"`, 1)
	c.upload("?pull_request=5&fail_on=high&commit="+headCommit, crashed).wants(http.StatusConflict, "a scanner that crashed").
		says("nothing was recorded, because lint did not cover everything",
			"Have it run to its end, or, if a result cannot be read, fix its output or have it report less")
	if reviews, issues := o.ofReviews(); len(reviews)+len(issues) != 0 {
		t.Errorf("stored are %v and %v", reviews, issues)
	}
	harness.Eventually(t, func(g Gomega) {
		failed := decoded[openapi.ScanList](c.get("/v2/scans?status=failed")).Items
		g.Expect(failed).To(HaveLen(1))
		g.Expect(failed[0].Message).To(ContainSubstring("lint did not cover everything"))
		upload := c.uploaded(failed[0].UploadId)
		g.Expect(*upload.Status).To(Equal(openapi.ScanStatusFailed))
		g.Expect(upload.Reviews).To(HaveLen(1))
		g.Expect(upload.Reviews[0].Gate).To(BeNil(), "no verdict without a review")
		g.Expect(upload.Reviews[0].Markdown).To(BeEmpty())
	})
}

func TestAQueryOfAPullRequestThatContradictsItselfIsRefused(t *testing.T) {
	o, c := uploader(t)
	env.Patch(t, builder.Repository("repo").In(o.namespace).Build(), `{"spec":{"defaultBranch":"main"}}`)
	for _, tc := range []struct{ query, want string }{
		{"?pull_request=5", "commit is needed"},
		{"?pull_request=5&commit=main", "7 to 64 hexadecimal digits"},
		{"?pull_request=5&ref=refs/pull/6/head&commit=" + headCommit, "leave one out"},
		{"?ref=refs/pull/0/head&commit=" + headCommit, "must be at least 1"},
		{"?ref=refs/pull/9999999999/head&commit=" + headCommit, "must be at least 1"},
		{"?ref=refs/pull/x/head&commit=" + headCommit, "is not a branch"},
		{"?ref=refs/pull/5/../head&commit=" + headCommit, "is not a branch"},
		{"?fail_on=high", "fail_on is about a pull request"},
		{"?pr_title=a", "pr_title is about a pull request"},
		{"?pr_author=a", "pr_author is about a pull request"},
		{"?pr_status=merged", "pr_status is about a pull request"},
		{"?pr_opened_at=2026-01-01T00:00:00Z", "pr_opened_at is about a pull request"},
		{"?pull_request=0", "pull_request"},
		{"?pull_request=5&fail_on=low", "fail_on"},
		{"?pull_request=5&pr_status=gone", "pr_status"},
	} {
		c.upload(tc.query, sarif("one")).wants(http.StatusBadRequest, tc.query).says(tc.want)
	}
	if reviews, issues := o.ofReviews(); len(reviews)+len(issues)+len(o.everything()) != 0 {
		t.Errorf("stored are %v and %v", reviews, issues)
	}
}
