// Package reviewstate derives a review issue's state from its spec and its review's. It is
// pure: the controller records its result in status, and nothing else decides.
package reviewstate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Observed is what the reviewed commits say of an issue.
type Observed struct {
	State v1alpha1.ReviewIssueState
	// ResolvedBy is the first reviewed commit after the last that shows the issue; empty while open.
	ResolvedBy string
	// ResolvedAt is when that commit was reviewed; nil while open.
	ResolvedAt *metav1.Time
	// FirstSeenAt and LastSeenAt are when the first and the last commit that show the issue
	// were reviewed; nil where none of them is among the reviewed commits.
	FirstSeenAt, LastSeenAt *metav1.Time
}

// Observe walks the reviewed commits in their order. An issue is open while the last of them
// shows it, and while none of them does: what was never looked at again is not resolved.
func Observe(issue *v1alpha1.ReviewIssueSpec, reviewed []v1alpha1.ReviewedCommit) Observed {
	seen := make(map[string]bool, len(issue.SeenInCommits))
	for _, sha := range issue.SeenInCommits {
		seen[string(sha)] = true
	}
	out := Observed{State: v1alpha1.ReviewIssueOpen}
	last := -1
	for i := range reviewed {
		if !seen[reviewed[i].SHA] {
			continue
		}
		if last < 0 {
			out.FirstSeenAt = reviewed[i].ReviewedAt.DeepCopy()
		}
		last = i
		out.LastSeenAt = reviewed[i].ReviewedAt.DeepCopy()
	}
	if last >= 0 && last+1 < len(reviewed) {
		out.State = v1alpha1.ReviewIssueResolved
		out.ResolvedBy = reviewed[last+1].SHA
		out.ResolvedAt = reviewed[last+1].ReviewedAt.DeepCopy()
	}
	return out
}

// Counts are the numbers of a review's issues by state, and of the open ones by severity.
type Counts struct {
	Closed, Open, OpenHigh, OpenMedium, OpenLow int32
}

// Count adds up the issues of one review.
func Count(issues []v1alpha1.ReviewIssueSpec, reviewed []v1alpha1.ReviewedCommit) Counts {
	var counts Counts
	for i := range issues {
		if Observe(&issues[i], reviewed).State == v1alpha1.ReviewIssueResolved {
			counts.Closed++
			continue
		}
		counts.Open++
		switch issues[i].Severity {
		case v1alpha1.LevelHigh:
			counts.OpenHigh++
		case v1alpha1.LevelMedium:
			counts.OpenMedium++
		case v1alpha1.LevelLow:
			counts.OpenLow++
		}
	}
	return counts
}
