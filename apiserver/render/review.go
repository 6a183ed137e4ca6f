package render

import (
	"cmp"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
)

// NewReview renders a review. counts are those of its issues, and repository is what is shown of its
// repository; nil if that does not exist.
//
// updatedAt is the time to show; see Finding. The same arguments always give the same bytes.
func NewReview(r *v1alpha1.Review, updatedAt time.Time, counts reviewstate.Counts,
	repository *Repository) (Record, error) {
	repository = cmp.Or(repository, noRepository)
	return newRecord("review", r.Name, &openapi.Review{
		Id:               r.Name,
		Provider:         cmp.Or(r.Spec.Provider, repository.provider),
		RepoId:           string(r.Spec.RepositoryRef.Name),
		RepoName:         repository.name,
		RepoOwner:        repository.owner,
		PrNumber:         r.Spec.PRNumber,
		PrTitle:          r.Spec.PRTitle,
		PrAuthor:         r.Spec.PRAuthor,
		PrStatus:         openapi.PullRequestStatus(r.Spec.PRStatus),
		OpenIssueCount:   counts.Open,
		OpenHighCount:    counts.OpenHigh,
		OpenMediumCount:  counts.OpenMedium,
		OpenLowCount:     counts.OpenLow,
		ClosedIssueCount: counts.Closed,
		LastReviewAt:     optionalSecond(reviewstate.LastReviewAt(r.Spec.ReviewedCommits)),
		CreatedAt:        second(r.CreationTimestamp.Time),
		UpdatedAt:        second(updatedAt),
	}, func(w *writer) {
		w.number("open_confirmed_count", counts.OpenConfirmed)
		w.number("open_muted_count", counts.OpenMuted)
	})
}

// NewReviewIssue renders an issue in the state of the given status. review is the issue's review, and
// repository what is shown of the review's repository; nil if they do not exist.
//
// updatedAt is the time to show; see Finding. The same arguments always give the same bytes.
func NewReviewIssue(i *v1alpha1.ReviewIssue, status *v1alpha1.ReviewIssueStatus, updatedAt time.Time,
	review *v1alpha1.Review, repository *Repository) (Record, error) {
	repository = cmp.Or(repository, noRepository)
	of := valueOf(review)
	return newRecord("review issue", i.Name, &openapi.ReviewIssue{
		Id:               i.Name,
		ReviewId:         string(i.Spec.ReviewRef.Name),
		Title:            i.Spec.Title,
		Description:      i.Spec.Description,
		Severity:         openapi.Severity(i.Spec.Severity),
		Status:           openapi.ReviewIssueStatus(status.State),
		Provider:         cmp.Or(of.Spec.Provider, repository.provider),
		RepoId:           string(of.Spec.RepositoryRef.Name),
		RepoName:         repository.name,
		RepoOwner:        repository.owner,
		PrNumber:         of.Spec.PRNumber,
		FilePath:         i.Spec.File,
		LineNumber:       i.Spec.Line,
		FileLocationLink: i.Spec.Links.FileLocation,
		CommitSha:        i.Spec.CommitSHA,
		CommitLink:       i.Spec.Links.Commit,
		SeenInCommits:    stringsOf(i.Spec.SeenInCommits),
		FirstSeenAt:      optionalSecond(status.FirstSeenAt),
		LastSeenAt:       optionalSecond(status.LastSeenAt),
		ResolvedAt:       optionalSecond(status.ResolvedAt),
		ResolvedBy:       status.ResolvedBy,
		CreatedAt:        second(i.CreationTimestamp.Time),
		UpdatedAt:        second(updatedAt),
	}, func(w *writer) { w.issueDecision(i) })
}

// issueDecision writes the decision about an issue, and the facts that it is based on.
func (w *writer) issueDecision(i *v1alpha1.ReviewIssue) {
	triage, result := &i.Spec.Triage, valueOf(i.Spec.Result)
	w.text("comments", triage.Comments)
	w.text("decided_by", triage.By)
	w.time("expires_at", triage.ExpiresAt)
	w.text("package_version", valueOf(result.Package).Version)
	w.enum("reason", string(triage.Reason))
	w.score("score", result.Score)
	w.text("tool_severity", result.ToolSeverity)
	w.text("user_status", string(reviewstate.UserStatus(i)))
	w.object("verdict", func() { w.verdict(valueOf(reviewstate.Judged(i))) })
}
