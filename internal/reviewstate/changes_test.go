package reviewstate_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// told returns a history as text, one line per transition.
func told(history []v1alpha1.Transition) []string {
	var out []string
	for _, t := range history {
		out = append(out, fmt.Sprintf("%d %s %s>%s %s", t.Seq, t.Type, t.From, t.To, t.By))
	}
	return out
}

func TestWhatIsRecordedOfAReview(t *testing.T) {
	before := v1alpha1.ReviewStatus{
		ObservedGeneration: 1, UpdatedAt: at(10), OpenIssueCount: 1, OpenLowCount: 1, EmittedSeq: 1,
		Transitions: []v1alpha1.Transition{{Seq: 1, Type: v1alpha1.TransitionUpdated, At: *at(10), To: "open"}},
	}
	counted := reviewstate.CountsOf(&before)
	older := before
	older.Transitions, older.EmittedSeq = nil, 0
	going := written(2, 30)
	going.DeletionTimestamp = &metav1.Time{Time: at(31).Time}
	cases := []struct {
		reason string
		meta   metav1.ObjectMeta
		spec   v1alpha1.PullRequestStatus
		status v1alpha1.ReviewStatus
		counts reviewstate.Counts
		want   []string
	}{
		{"the first look", written(1, 5), "open", v1alpha1.ReviewStatus{}, counted, []string{"1 updated >open "}},
		{"nothing has changed", written(1, 5), "open", before, counted, []string{"1 updated >open "}},
		{"the pull request was merged", written(2, 30), "merged", before, counted, []string{"1 updated >open ", "2 updated open>merged "}},
		{"another commit was reviewed", written(2, 30), "open", before, counted, []string{"1 updated >open ", "2 updated open>open "}},
		{"an issue was resolved", written(1, 5), "open", before, reviewstate.Counts{Closed: 1}, []string{"1 updated >open ", "2 updated open>open "}},
		{"both at once are one change", written(2, 30), "closed", before, reviewstate.Counts{Closed: 1}, []string{"1 updated >open ", "2 updated open>closed "}},
		{"a review from before transitions were kept is not new", written(1, 5), "open", older, counted, nil},
		{"and its next change is the first recorded", written(2, 30), "merged", older, counted, []string{"1 updated >merged "}},
		{"while it is removed nothing is news", going, "open", before, reviewstate.Counts{}, []string{"1 updated >open "}},
	}
	for _, c := range cases {
		review := &v1alpha1.Review{ObjectMeta: c.meta, Spec: v1alpha1.ReviewSpec{PRStatus: c.spec}, Status: c.status}
		got := reviewstate.ReviewStatus(review, c.counts, at(60).Time)
		harness.Same(t, c.reason, c.want, told(got.Transitions))
		harness.Same(t, c.reason+": emittedSeq, as making the events is not this rule's", c.status.EmittedSeq, got.EmittedSeq)
		if n := len(got.Transitions); n > len(c.status.Transitions) && !got.Transitions[n-1].At.Equal(got.UpdatedAt) {
			t.Errorf("%s: dated %s, updated %s", c.reason, got.Transitions[n-1].At, got.UpdatedAt)
		}
	}
}

func TestWhatIsRecordedOfAnIssue(t *testing.T) {
	const open, resolved = v1alpha1.ReviewIssueOpen, v1alpha1.ReviewIssueResolved
	status := func(state v1alpha1.ReviewIssueState) v1alpha1.ReviewIssueStatus {
		return v1alpha1.ReviewIssueStatus{ObservedGeneration: 1, UpdatedAt: at(10), State: state}
	}
	emitted := status(open)
	emitted.EmittedSeq = 4
	cases := []struct {
		reason string
		issue  *v1alpha1.ReviewIssueSpec
		status v1alpha1.ReviewIssueStatus
		review *v1alpha1.ReviewSpec
		want   []string
	}{
		{"the first look at an issue", seenIn("a"), v1alpha1.ReviewIssueStatus{}, commits("a"), []string{"1 opened >open "}},
		{"its review is not there yet", seenIn("a"), v1alpha1.ReviewIssueStatus{}, nil, []string{"1 opened >open "}},
		{"resolved before it was ever seen", seenIn("a"), v1alpha1.ReviewIssueStatus{}, commits("a", "b"), []string{"1 resolved >resolved b"}},
		{"nothing has changed", seenIn("a"), status(open), commits("a"), nil},
		{"the next commit does not show it", seenIn("a"), status(open), commits("a", "b"), []string{"1 resolved open>resolved b"}},
		{"numbers go on", seenIn("a"), emitted, commits("a", "b"), []string{"5 resolved open>resolved b"}},
		{"still resolved", seenIn("a"), status(resolved), commits("a", "b", "c"), nil},
		{"a later commit shows it again", seenIn("a", "c"), status(resolved), commits("a", "b", "c"), []string{"1 opened resolved>open "}},
		{"the commit that resolved it is forgotten", &v1alpha1.ReviewIssueSpec{CommitSHA: "x"}, status(open), commits("b"), []string{"1 resolved open>resolved "}},
		{"its review has gone", seenIn("a"), status(resolved), nil, nil},
	}
	for _, c := range cases {
		issue := &v1alpha1.ReviewIssue{ObjectMeta: written(1, 5), Spec: *c.issue, Status: c.status}
		got := reviewstate.IssueStatus(issue, c.review, at(60).Time)
		harness.Same(t, c.reason, c.want, told(got.Transitions))
		if n := len(got.Transitions); n > 0 && !got.Transitions[n-1].At.Equal(got.UpdatedAt) {
			t.Errorf("%s: dated %s, updated %s", c.reason, got.Transitions[n-1].At, got.UpdatedAt)
		}
	}
}

func commits(shas ...string) *v1alpha1.ReviewSpec {
	return &v1alpha1.ReviewSpec{ReviewedCommits: reviewed(shas...)}
}

// Whatever commits are reviewed and whatever they show, an issue's history is a chain from its
// first state to its current one, without gaps and without steps that change nothing; and a second
// reconcile changes nothing.
func TestAnIssuesHistoryIsAChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		issue := &v1alpha1.ReviewIssue{ObjectMeta: written(1, 5), Spec: *seenIn("c0")}
		review := commits("c0")
		var all []v1alpha1.Transition
		for i := range rapid.IntRange(1, 40).Draw(t, "commits") {
			sha := fmt.Sprintf("c%d", i+1)
			review.ReviewedCommits = append(review.ReviewedCommits, v1alpha1.ReviewedCommit{SHA: sha, ReviewedAt: *at(i + 1)})
			if rapid.Bool().Draw(t, "shows it") {
				issue.Generation++
				issue.Spec.SeenInCommits = append(issue.Spec.SeenInCommits, v1alpha1.CommitSHA(sha))
			}
			now := at(60 + i).Time
			before := len(all)
			issue.Status = reviewstate.IssueStatus(issue, review, now)
			for _, transition := range issue.Status.Transitions {
				if transition.Seq > int64(len(all)) {
					all = append(all, transition)
				}
			}
			harness.Same(t, "a second look", issue.Status, reviewstate.IssueStatus(issue, review, now.Add(time.Hour)))
			if len(all) > before+1 {
				t.Fatalf("one look recorded %v", told(all[before:]))
			}
			if rapid.Bool().Draw(t, "emits") {
				issue.Status.EmittedSeq = int64(len(all))
			}
		}
		for i, transition := range all {
			if transition.Seq != int64(i+1) {
				t.Fatalf("a gap: %v", told(all))
			}
			if i > 0 && (transition.From != all[i-1].To || transition.From == transition.To) {
				t.Fatalf("no chain: %v", told(all))
			}
		}
		if all[len(all)-1].To != string(issue.Status.State) {
			t.Fatalf("%s, and the history is %v", issue.Status.State, told(all))
		}
	})
}
