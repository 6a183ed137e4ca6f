// Package reviewstate derives what a review and its issues say from their specs. It is pure:
// the controllers record its results in status, and nothing else decides.
package reviewstate

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Observed is what the reviewed commits say of an issue.
type Observed struct {
	State v1alpha1.ReviewIssueState
	// ResolvedBy is the first reviewed commit after the last that shows the issue; empty
	// while open, and where the review no longer keeps it.
	ResolvedBy string
	// ResolvedAt is when that commit was reviewed; nil where it is not known.
	ResolvedAt *v1alpha1.Time
	// FirstSeenAt and LastSeenAt are when the first and the last commit that show the issue
	// were reviewed; nil where none of them is among the reviewed commits.
	FirstSeenAt, LastSeenAt *v1alpha1.Time
}

// Observe walks the reviewed commits in their order. An issue is open while the last of them
// shows it, and while none of them does: what was never looked at again is not resolved.
//
// A review keeps no more than 250 commits. An issue that only forgotten ones have shown names
// none in seenInCommits, and in commitSHA one that is not among the reviewed: it was resolved
// before the first that is kept.
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

// showing says of a commit whether it shows the issue.
func showing(issue *v1alpha1.ReviewIssueSpec) func(sha string) bool {
	if isForgotten(issue) {
		return func(sha string) bool { return sha == issue.CommitSHA }
	}
	seen := make(map[string]bool, len(issue.SeenInCommits))
	for _, sha := range issue.SeenInCommits {
		seen[string(sha)] = true
	}
	return func(sha string) bool { return seen[sha] }
}

// isForgotten says that the issue names a commit that first showed it and none that shows it
// still: the importer has taken these away, with the last reviewed commit that was among them.
func isForgotten(issue *v1alpha1.ReviewIssueSpec) bool {
	return len(issue.SeenInCommits) == 0 && issue.CommitSHA != ""
}

// Counts are the numbers of a review's issues by state, of the open ones by severity, and of those that are muted or
// confirmed.
type Counts struct {
	Closed, Open, OpenHigh, OpenMedium, OpenLow int32
	OpenMuted, OpenConfirmed                    int32
}

// Plus returns the sum of both, with sign as the factor of the other.
func (c Counts) Plus(sign int32, other Counts) Counts {
	return Counts{
		Closed: c.Closed + sign*other.Closed, Open: c.Open + sign*other.Open,
		OpenHigh: c.OpenHigh + sign*other.OpenHigh, OpenMedium: c.OpenMedium + sign*other.OpenMedium,
		OpenLow:   c.OpenLow + sign*other.OpenLow,
		OpenMuted: c.OpenMuted + sign*other.OpenMuted, OpenConfirmed: c.OpenConfirmed + sign*other.OpenConfirmed,
	}
}

// AddIssue counts one more issue of the review, and what was decided about it.
func (c *Counts) AddIssue(issue *v1alpha1.ReviewIssue, reviewed []v1alpha1.ReviewedCommit) {
	open := c.Open
	c.Add(&issue.Spec, reviewed)
	if c.Open == open {
		return
	}
	switch Decided(issue) {
	case v1alpha1.UserStatusMuted:
		c.OpenMuted++
	case v1alpha1.UserStatusActive:
		c.OpenConfirmed++
	case v1alpha1.UserStatusOpen:
	}
}

// Add counts one more issue of the review.
func (c *Counts) Add(issue *v1alpha1.ReviewIssueSpec, reviewed []v1alpha1.ReviewedCommit) {
	if Observe(issue, reviewed).State == v1alpha1.ReviewIssueResolved {
		c.Closed++
		return
	}
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
