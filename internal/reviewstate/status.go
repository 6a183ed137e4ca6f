package reviewstate

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
	"github.com/appsec-dev/findings-operator/internal/transitions"
)

// ReviewStatus returns the status that follows from the review's spec, its issues' counts and its current status.
// Conditions stay. If nothing has changed, the returned status equals the current one.
//
// updatedAt also changes with the counters, or a client that polls for changes would miss that an issue was resolved.
func ReviewStatus(review *v1alpha1.Review, counts Counts, now time.Time) v1alpha1.ReviewStatus {
	before, next := &review.Status, *review.Status.DeepCopy()
	next.ClosedIssueCount, next.OpenIssueCount = counts.Closed, counts.Open
	next.OpenHighCount, next.OpenMediumCount, next.OpenLowCount = counts.OpenHigh, counts.OpenMedium, counts.OpenLow
	next.OpenMutedCount, next.OpenConfirmedCount = counts.OpenMuted, counts.OpenConfirmed
	next.LastReviewAt = LastReviewAt(review.Spec.ReviewedCommits)
	next.UpdatedAt = updatedAt(review, before.ObservedGeneration, before.UpdatedAt, CountsOf(before) != counts, now)
	next.ObservedGeneration = review.Generation
	next.Transitions = transitions.Of(before.Transitions, before.EmittedSeq).Record(*next.UpdatedAt,
		reviewChanges(review, counts)...)
	return next
}

// CountsOf returns the counters of a status.
func CountsOf(status *v1alpha1.ReviewStatus) Counts {
	return Counts{
		Closed: status.ClosedIssueCount, Open: status.OpenIssueCount,
		OpenHigh: status.OpenHighCount, OpenMedium: status.OpenMediumCount, OpenLow: status.OpenLowCount,
		OpenMuted: status.OpenMutedCount, OpenConfirmed: status.OpenConfirmedCount,
	}
}

// LastReviewAt returns a copy of when the last commit was reviewed; nil if none was.
func LastReviewAt(reviewed []v1alpha1.ReviewedCommit) *v1alpha1.Time {
	if len(reviewed) == 0 {
		return nil
	}
	return reviewed[len(reviewed)-1].ReviewedAt.DeepCopy()
}

// IssueStatus returns the status that follows from the issue's spec, its review's and its current status. Conditions
// stay. Without a review (nil) the recorded state is kept: an issue does not reopen because its review was deleted. The
// recorded verdict of policies is kept, too.
func IssueStatus(issue *v1alpha1.ReviewIssue, review *v1alpha1.ReviewSpec, now time.Time) v1alpha1.ReviewIssueStatus {
	return JudgedStatus(issue, review, issue.Status.Verdict, now)
}

// JudgedStatus is IssueStatus with this verdict of policies instead of the recorded one; nil for none.
func JudgedStatus(issue *v1alpha1.ReviewIssue, review *v1alpha1.ReviewSpec, verdict *v1alpha1.FindingVerdict,
	now time.Time) v1alpha1.ReviewIssueStatus {
	before, next := &issue.Status, *issue.Status.DeepCopy()
	switch {
	case review != nil:
		observed := Observe(&issue.Spec, review.ReviewedCommits)
		next.State = observed.State
		next.ResolvedBy, next.ResolvedAt = observed.ResolvedBy, observed.ResolvedAt
		next.FirstSeenAt, next.LastSeenAt = observed.FirstSeenAt, observed.LastSeenAt
	case before.State == "":
		next.State = v1alpha1.ReviewIssueOpen
	}
	decided := decide(issue, review, verdict, &next, now)
	// A user's decision is a write of the spec, whose time is known.
	changed := before.State != next.State || slices.ContainsFunc(decided, func(t v1alpha1.Transition) bool {
		return t.Type != v1alpha1.TransitionTriaged
	})
	next.UpdatedAt = updatedAt(issue, before.ObservedGeneration, before.UpdatedAt, changed, now)
	if next.Verdict != nil && !findingstate.SameVerdict(next.Verdict, before.Verdict) {
		next.Verdict.Since = *next.UpdatedAt
	}
	next.ObservedGeneration = issue.Generation
	next.Transitions = transitions.Of(before.Transitions, before.EmittedSeq).Record(*next.UpdatedAt,
		append(issueChanges(before.State, &next), decided...)...)
	return next
}

// updatedAt returns when the spec was last written or, if something else that counts has changed,
// now. It never decreases. The first reconcile of an object does not count as a change.
func updatedAt(object metav1.Object, generation int64, before *v1alpha1.Time, changed bool,
	now time.Time) *v1alpha1.Time {
	at := lastwrite.UpdatedAt(object, lastwrite.Observed{Generation: generation, UpdatedAt: before}, now)
	if moment := v1alpha1.NewTime(now); changed && before != nil && at.Before(&moment) {
		at = moment
	}
	return &at
}
