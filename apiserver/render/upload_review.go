package render

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/scanimport/reviewimport"
)

// uploadReviews returns the review that an upload's scans belong to, if any.
func uploadReviews(scans []*v1alpha1.Scan) []openapi.UploadReview {
	if !scans[0].IsOfReview() {
		return []openapi.UploadReview{}
	}
	shown := UploadReview(reviewimport.Recorded(scans))
	shown.FailOn = scans[0].Spec.Review.FailOn
	return []openapi.UploadReview{shown}
}

// UploadReview returns what an upload shows of the review of a pull request. Each upload compares with the
// base, so a review without that comparison is not complete.
func UploadReview(s *reviewimport.Summary) openapi.UploadReview {
	count := func(n int) int32 { return int32(n) } //nolint:gosec // bounded by what a file can hold
	shown := openapi.UploadReview{
		ReviewId: s.Review, PrNumber: s.PRNumber, CommitHash: s.Commit,
		Created: count(s.Created), Reopened: count(s.Reopened), Seen: count(s.Seen), Unchanged: count(s.Unchanged),
		Resolved: count(s.Resolved), Skipped: count(s.Skipped),
		Open: count(s.Open), OpenHigh: count(s.OpenHigh), OpenMedium: count(s.OpenMedium), OpenLow: count(s.OpenLow),
		BaseNeverScannedWith: []string{},
	}
	issues := s.Issues[:min(len(s.Issues), v1alpha1.MaxScanReviewIssues)]
	shown.Issues = convert(issues, func(issue reviewimport.Issue) openapi.UploadReviewIssue {
		return openapi.UploadReviewIssue{
			IssueId: issue.Name, Severity: openapi.Severity(issue.Severity), Title: issue.Title, Place: issue.Place,
			New: issue.New,
		}
	})
	if s.Base == nil {
		return shown
	}
	shown.Known, shown.InDoubt, shown.Fixed = count(s.Base.Known), count(s.Base.InDoubt), count(s.Base.Fixed)
	shown.BaseNeverScannedWith = append(shown.BaseNeverScannedWith, s.Base.Unscanned...)
	shown.Markdown = string(s.Markdown())
	if g := s.Gate; g != nil {
		verdict := openapi.GateVerdictFailed
		if g.Passed {
			verdict = openapi.GateVerdictPassed
		}
		shown.FailOn, shown.Gate, shown.GateReason = string(g.Gate), &verdict, g.Because
	}
	return shown
}
