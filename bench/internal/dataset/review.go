package dataset

import (
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/internal/transitions"
)

const (
	// IssuesPerReview on average.
	IssuesPerReview = 2
	// FewEvery is how rare merged reviews with unresolved issues are: one in FewEvery.
	FewEvery = 500
)

func (d *Data) makeReviews() {
	for i := range d.options.Reviews {
		r := dice("review", i)
		review := d.review(r, i)
		var counts reviewstate.Counts
		var issues []*v1alpha1.ReviewIssue
		if len(review.Spec.ReviewedCommits) > 0 {
			for j := range i % (2*IssuesPerReview + 1) {
				issue := d.issue(r, review, i, j)
				counts.AddIssue(issue, review.Spec.ReviewedCommits)
				issues = append(issues, issue)
			}
		}
		settleReview(review, counts)
		d.Reviews, d.Issues = append(d.Reviews, review), append(d.Issues, issues...)
	}
}

func (d *Data) review(r *rand.Rand, i int) *v1alpha1.Review {
	repository := d.Repositories[r.IntN(len(d.Repositories))]
	created := moment(r, d.options.Now)
	// Of ten reviews, two are open, one is closed and seven are merged.
	status := pick(r, v1alpha1.PullRequestOpen, v1alpha1.PullRequestOpen, v1alpha1.PullRequestClosed,
		v1alpha1.PullRequestMerged, v1alpha1.PullRequestMerged,
		v1alpha1.PullRequestMerged, v1alpha1.PullRequestMerged, v1alpha1.PullRequestMerged, v1alpha1.PullRequestMerged, v1alpha1.PullRequestMerged)
	if fewMatch(i) {
		status = v1alpha1.PullRequestMerged
	}
	review := &v1alpha1.Review{
		TypeMeta:   typeMeta("Review"),
		ObjectMeta: d.meta("Review", "r-"+fingerprints.Hash(repository.Name, fmt.Sprint(i)), created),
		Spec: v1alpha1.ReviewSpec{
			RepositoryRef: v1alpha1.RepositoryReference{Name: v1alpha1.ResourceName(repository.Name)}, Provider: "github", PRNumber: int32(i + 1),
			PRTitle: pick(r, "Cache exchange rates", "Round totals", "Sign sessions", "Move the queue to its own table",
				"Raise the client") + fmt.Sprint(" (", i, ")"),
			PRAuthor: fmt.Sprint("author-", r.IntN(60)), PRStatus: status,
		},
	}
	// Every tenth review has no reviewed commits yet.
	if i%10 == 9 && !fewMatch(i) {
		return review
	}
	for j := range 2 + r.IntN(4) {
		review.Spec.ReviewedCommits = append(review.Spec.ReviewedCommits, v1alpha1.ReviewedCommit{
			SHA: sha(r), ReviewedAt: v1alpha1.NewTime(created.Add(time.Duration(j) * time.Minute)),
		})
	}
	return review
}

// fewMatch reports whether the review is one of the few that are merged with unresolved issues.
func fewMatch(i int) bool { return i%FewEvery == FewEvery/2+1 }

// issue returns an issue that the last commit resolves, unless the review is open or one of the
// few.
func (d *Data) issue(r *rand.Rand, review *v1alpha1.Review, i, j int) *v1alpha1.ReviewIssue {
	commits := review.Spec.ReviewedCommits
	open := fewMatch(i) || review.Spec.PRStatus == v1alpha1.PullRequestOpen && j%2 == 0
	seen := commits[:len(commits)-1]
	if open {
		seen = commits
	}
	path, line := filePath(r, ".go"), 1+r.IntN(500)
	s := byWeight[r.IntN(len(byWeight))]
	name := "i-" + fingerprints.Hash(review.Name, fmt.Sprint(j))
	issue := &v1alpha1.ReviewIssue{
		TypeMeta:   typeMeta("ReviewIssue"),
		ObjectMeta: d.meta("ReviewIssue", name, v1alpha1.NewTime(review.CreationTimestamp.Time)),
		Spec: v1alpha1.ReviewIssueSpec{
			ReviewRef: v1alpha1.ReviewReference{Name: v1alpha1.ResourceName(review.Name)},
			Title:     s.title, Description: s.description, Severity: s.severity, File: path, Line: int32(line), CommitSHA: commits[0].SHA,
			Links: v1alpha1.ReviewIssueLinks{
				Commit: fmt.Sprintf("https://code.example.org/acme/%s/commit/%s", review.Spec.RepositoryRef.Name,
					commits[0].SHA),
				FileLocation: fmt.Sprintf("https://code.example.org/acme/%s/blob/%s/%s#L%d", review.Spec.RepositoryRef.Name,
					commits[0].SHA, path, line),
			},
		},
	}
	for _, commit := range seen {
		issue.Spec.SeenInCommits = append(issue.Spec.SeenInCommits, v1alpha1.CommitSHA(commit.SHA))
	}
	settleIssue(issue, &review.Spec)
	return issue
}

func settleReview(review *v1alpha1.Review, counts reviewstate.Counts) {
	at := v1alpha1.NewTime(review.CreationTimestamp.Time)
	review.ManagedFields = []metav1.ManagedFieldsEntry{applied("scanner/review", at).entry("spec", "", review.Spec)}
	review.Status = reviewstate.ReviewStatus(review, counts, at.Time)
	review.Status.EmittedSeq = transitions.Of(review.Status.Transitions, 0).LastSeq()
	review.Status.Conditions = ready(at, "The status is that of the spec and of the issues.")
	settle(&review.ObjectMeta, "scanner/review", review.Spec, review.Status)
}

func settleIssue(issue *v1alpha1.ReviewIssue, review *v1alpha1.ReviewSpec) {
	at := v1alpha1.NewTime(issue.CreationTimestamp.Time)
	issue.ManagedFields = []metav1.ManagedFieldsEntry{applied("scanner/review", at).entry("spec", "", issue.Spec)}
	issue.Status = reviewstate.IssueStatus(issue, review, at.Time)
	issue.Status.EmittedSeq = transitions.Of(issue.Status.Transitions, 0).LastSeq()
	issue.Status.Conditions = ready(at, "The status is that of the spec and of the review's.")
	issue.ManagedFields = append(issue.ManagedFields, observed(at).entry("status", "", issue.Status))
}
