// Package reviewstate derives the status of a review and its issues from their specs. It is pure:
// the controllers record its results in status.
package reviewstate

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Observed is what follows from the reviewed commits for an issue.
type Observed struct {
	State v1alpha1.ReviewIssueState
	// ResolvedBy is the first reviewed commit after the last that shows the issue; empty while the
	// issue is open, or if the review no longer keeps that commit.
	ResolvedBy string
	// ResolvedAt is when that commit was reviewed; nil if unknown.
	ResolvedAt *v1alpha1.Time
	// FirstSeenAt and LastSeenAt are when the first and the last commit that show the issue were
	// reviewed; nil if none of them is among the reviewed commits.
	FirstSeenAt, LastSeenAt *v1alpha1.Time
}

// Observe walks the reviewed commits in order. An issue is open if the last of them shows it, or if none of them does:
// an issue that was never reviewed again is not resolved.
//
// A review keeps at most 250 commits. An issue shown only by commits that are no longer kept has an empty seenInCommits
// and a commitSHA: it was resolved before the first kept commit. It stays resolved if the commit of its commitSHA is
// reviewed again without it.
func Observe(issue *v1alpha1.ReviewIssueSpec, reviewed []v1alpha1.ReviewedCommit) Observed {
	shows := showing(issue)
	out := Observed{State: v1alpha1.ReviewIssueOpen}
	last := -1
	for i := range reviewed {
		if !shows(reviewed[i].SHA) {
			continue
		}
		if last < 0 {
			out.FirstSeenAt = reviewed[i].ReviewedAt.DeepCopy()
		}
		last = i
		out.LastSeenAt = reviewed[i].ReviewedAt.DeepCopy()
	}
	switch {
	case last >= 0 && last+1 < len(reviewed):
		out.State = v1alpha1.ReviewIssueResolved
		out.ResolvedBy = reviewed[last+1].SHA
		out.ResolvedAt = reviewed[last+1].ReviewedAt.DeepCopy()
	case last < 0 && len(reviewed) > 0 && isForgotten(issue):
		out.State = v1alpha1.ReviewIssueResolved
	}
	return out
}

// showing returns a function that reports whether a commit shows the issue. An issue without that list and without a
// result was written by hand, and is shown by its commitSHA. An importer writes the list: if it is empty, no kept
// commit shows the issue.
func showing(issue *v1alpha1.ReviewIssueSpec) func(sha string) bool {
	if isForgotten(issue) {
		return func(sha string) bool { return issue.Result == nil && sha == issue.CommitSHA }
	}
	seen := sets.New(issue.SeenInCommits...)
	return func(sha string) bool { return seen.Has(v1alpha1.CommitSHA(sha)) }
}

// isForgotten reports whether the issue has a commitSHA but an empty seenInCommits: the importer
// empties that list when the review no longer keeps any of its commits.
func isForgotten(issue *v1alpha1.ReviewIssueSpec) bool {
	return len(issue.SeenInCommits) == 0 && issue.CommitSHA != ""
}

// Counts holds the numbers of a review's issues by state, and of the open ones by severity and by decision. Its JSON
// has the names of the REST API.
type Counts struct {
	Closed        int32 `json:"closed_issue_count"`
	Open          int32 `json:"open_issue_count"`
	OpenHigh      int32 `json:"open_high_count"`
	OpenMedium    int32 `json:"open_medium_count"`
	OpenLow       int32 `json:"open_low_count"`
	OpenMuted     int32 `json:"open_muted_count"`
	OpenConfirmed int32 `json:"open_confirmed_count"`
}

// Plus returns c + sign * other.
func (c Counts) Plus(sign int32, other Counts) Counts {
	return Counts{
		Closed: c.Closed + sign*other.Closed, Open: c.Open + sign*other.Open,
		OpenHigh: c.OpenHigh + sign*other.OpenHigh, OpenMedium: c.OpenMedium + sign*other.OpenMedium,
		OpenLow:   c.OpenLow + sign*other.OpenLow,
		OpenMuted: c.OpenMuted + sign*other.OpenMuted, OpenConfirmed: c.OpenConfirmed + sign*other.OpenConfirmed,
	}
}

// AddIssue counts one more issue of the review, and the decision about it.
func (c *Counts) AddIssue(issue *v1alpha1.ReviewIssue, reviewed []v1alpha1.ReviewedCommit) {
	if Observe(&issue.Spec, reviewed).State == v1alpha1.ReviewIssueResolved {
		c.Closed++
		return
	}
	c.AddOpen(&issue.Spec)
	switch Decided(issue) {
	case v1alpha1.UserStatusMuted:
		c.OpenMuted++
	case v1alpha1.UserStatusActive:
		c.OpenConfirmed++
	case v1alpha1.UserStatusOpen:
	}
}

// AddOpen counts one more open issue.
func (c *Counts) AddOpen(issue *v1alpha1.ReviewIssueSpec) {
	c.Open++
	switch issue.Severity {
	case v1alpha1.LevelHigh:
		c.OpenHigh++
	case v1alpha1.LevelMedium:
		c.OpenMedium++
	case v1alpha1.LevelLow:
		c.OpenLow++
	}
}
