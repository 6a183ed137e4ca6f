package reviewstate_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// written returns the metadata of an object of that generation whose spec was last written in that
// minute. It was created in the fifth minute.
func written(generation int64, minute int) metav1.ObjectMeta {
	created := metav1.NewTime(at(5).Time)
	return metav1.ObjectMeta{Generation: generation, CreationTimestamp: created, ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "scanner/review", Time: &metav1.Time{Time: at(minute).Time}},
		{Manager: v1alpha1.ControllerFieldManager, Subresource: "status", Time: &metav1.Time{Time: at(minute + 50).Time}},
	}}
}

func TestWhenAReviewWasUpdated(t *testing.T) {
	counted := reviewstate.Counts{Open: 1, OpenLow: 1}
	settled := v1alpha1.ReviewStatus{ObservedGeneration: 1, UpdatedAt: at(10), OpenIssueCount: 1, OpenLowCount: 1}
	cases := []struct {
		reason string
		review v1alpha1.Review
		counts reviewstate.Counts
		now    int
		want   int
	}{
		{"at first it is when the spec was written, whatever is counted", v1alpha1.Review{ObjectMeta: written(1, 5)}, counted, 60, 5},
		{"nothing has changed", v1alpha1.Review{ObjectMeta: written(1, 5), Status: settled}, counted, 60, 10},
		{"the spec has changed", v1alpha1.Review{ObjectMeta: written(2, 30), Status: settled}, counted, 60, 30},
		{"a counter has changed", v1alpha1.Review{ObjectMeta: written(1, 5), Status: settled}, reviewstate.Counts{Closed: 1}, 60, 60},
		{"both have changed", v1alpha1.Review{ObjectMeta: written(2, 30), Status: settled}, reviewstate.Counts{Closed: 1}, 60, 60},
		{"our clock is behind: it never goes back", v1alpha1.Review{ObjectMeta: written(1, 5), Status: settled}, reviewstate.Counts{Closed: 1}, 7, 10},
	}
	for _, c := range cases {
		got := reviewstate.ReviewStatus(&c.review, c.counts, at(c.now).Time)
		harness.Same(t, c.reason+": updated at", at(c.want), got.UpdatedAt)
		if got.ObservedGeneration != c.review.Generation || reviewstate.CountsOf(&got) != c.counts {
			t.Errorf("%s: %+v", c.reason, got)
		}
	}
}

func TestWhenAnIssueWasUpdated(t *testing.T) {
	shown := v1alpha1.ReviewIssueSpec{SeenInCommits: []v1alpha1.CommitSHA{"a"}}
	settled := v1alpha1.ReviewIssueStatus{ObservedGeneration: 1, UpdatedAt: at(10), State: v1alpha1.ReviewIssueOpen}
	once, twice := &v1alpha1.ReviewSpec{ReviewedCommits: reviewed("a")}, &v1alpha1.ReviewSpec{ReviewedCommits: reviewed("a", "b")}
	again := v1alpha1.ReviewIssueSpec{SeenInCommits: []v1alpha1.CommitSHA{"a", "b"}}
	cases := []struct {
		reason    string
		issue     v1alpha1.ReviewIssue
		review    *v1alpha1.ReviewSpec
		now, want int
	}{
		{"at first it is when the spec was written", v1alpha1.ReviewIssue{ObjectMeta: written(1, 5), Spec: shown}, twice, 60, 5},
		{"nothing has changed", v1alpha1.ReviewIssue{ObjectMeta: written(1, 5), Spec: shown, Status: settled}, once, 60, 10},
		{"the review has resolved it", v1alpha1.ReviewIssue{ObjectMeta: written(1, 5), Spec: shown, Status: settled}, twice, 60, 60},
		{"another commit shows it, and the state stays", v1alpha1.ReviewIssue{ObjectMeta: written(2, 30), Spec: again, Status: settled}, twice, 60, 30},
		{"our clock is behind: it never goes back", v1alpha1.ReviewIssue{ObjectMeta: written(1, 5), Spec: shown, Status: settled}, twice, 7, 10},
	}
	for _, c := range cases {
		harness.Same(t, c.reason+": updated at", at(c.want), reviewstate.IssueStatus(&c.issue, c.review, at(c.now).Time).UpdatedAt)
	}
}

func TestWithoutItsReviewAnIssueStaysWhatItWas(t *testing.T) {
	resolved := v1alpha1.ReviewIssueStatus{
		ObservedGeneration: 1, UpdatedAt: at(10), State: v1alpha1.ReviewIssueResolved, ResolvedBy: "b", ResolvedAt: at(9), FirstSeenAt: at(1), LastSeenAt: at(2),
		UserStatus: v1alpha1.UserStatusOpen, TriageDigest: findingstate.TriageDigest(&v1alpha1.FindingSpec{}),
	}
	issue := v1alpha1.ReviewIssue{ObjectMeta: written(1, 5), Status: resolved}
	harness.Same(t, "status", resolved, reviewstate.IssueStatus(&issue, nil, at(60).Time))
	issue.Status = v1alpha1.ReviewIssueStatus{}
	got := reviewstate.IssueStatus(&issue, nil, at(60).Time).State
	harness.Same(t, "the state of an issue of a review that never existed", v1alpha1.ReviewIssueOpen, got)
}

// A status that is stored and read again must stay the same, or reconciles would never settle.
func TestASecondReconcileChangesNothing(t *testing.T) {
	now := time.Date(2026, time.March, 1, 13, 0, 0, 123456789, time.UTC)
	review := v1alpha1.Review{ObjectMeta: written(3, 30), Spec: v1alpha1.ReviewSpec{ReviewedCommits: reviewed("a", "b")}}
	review.Status = reviewstate.ReviewStatus(&review, reviewstate.Counts{Open: 1}, now)
	harness.Same(t, "review", review.Status, reviewstate.ReviewStatus(&review, reviewstate.Counts{Open: 1}, now.Add(time.Hour)))
	issue := v1alpha1.ReviewIssue{ObjectMeta: written(3, 30), Spec: *seenIn("a")}
	issue.Status = reviewstate.IssueStatus(&issue, &review.Spec, now)
	harness.Same(t, "issue", issue.Status, reviewstate.IssueStatus(&issue, &review.Spec, now.Add(time.Hour)))
}
