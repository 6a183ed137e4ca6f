package reviewstate_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var start = v1alpha1.NewTime(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))

func at(minute int) *v1alpha1.Time {
	t := v1alpha1.NewTime(start.Add(time.Duration(minute) * time.Minute))
	return &t
}

// reviewed returns commits that were reviewed one minute apart.
func reviewed(shas ...string) []v1alpha1.ReviewedCommit {
	out := make([]v1alpha1.ReviewedCommit, len(shas))
	for i, sha := range shas {
		out[i] = v1alpha1.ReviewedCommit{SHA: sha, ReviewedAt: *at(i)}
	}
	return out
}

func seenIn(shas ...v1alpha1.CommitSHA) *v1alpha1.ReviewIssueSpec {
	return &v1alpha1.ReviewIssueSpec{Severity: v1alpha1.LevelHigh, SeenInCommits: shas}
}

func TestAnIssuesStateFollowsFromTheCommitsThatShowIt(t *testing.T) {
	const open, resolved = v1alpha1.ReviewIssueOpen, v1alpha1.ReviewIssueResolved
	cases := []struct {
		reason   string
		issue    *v1alpha1.ReviewIssueSpec
		reviewed []v1alpha1.ReviewedCommit
		want     reviewstate.Observed
	}{{
		reason: "the only commit reviewed shows it",
		issue:  seenIn("a"), reviewed: reviewed("a"),
		want: reviewstate.Observed{State: open, FirstSeenAt: at(0), LastSeenAt: at(0)},
	}, {
		reason: "the next commit reviewed no longer shows it",
		issue:  seenIn("a"), reviewed: reviewed("a", "b", "c"),
		want: reviewstate.Observed{State: resolved, ResolvedBy: "b", ResolvedAt: at(1), FirstSeenAt: at(0), LastSeenAt: at(0)},
	}, {
		reason: "it came back, so what resolved it once does not count",
		issue:  seenIn("a", "c"), reviewed: reviewed("a", "b", "c"),
		want: reviewstate.Observed{State: open, FirstSeenAt: at(0), LastSeenAt: at(2)},
	}, {
		reason: "it came back and went again",
		issue:  seenIn("c", "a"), reviewed: reviewed("a", "b", "c", "d"),
		want: reviewstate.Observed{State: resolved, ResolvedBy: "d", ResolvedAt: at(3), FirstSeenAt: at(0), LastSeenAt: at(2)},
	}, {
		reason: "no commit that shows it was reviewed, so nothing says it is gone",
		issue:  seenIn("x"), reviewed: reviewed("a", "b"),
		want: reviewstate.Observed{State: open},
	}, {
		reason: "nothing was reviewed yet",
		issue:  seenIn("a"),
		want:   reviewstate.Observed{State: open},
	}, {
		reason: "an issue that says nowhere it was seen stays open",
		issue:  seenIn(), reviewed: reviewed("a"),
		want: reviewstate.Observed{State: open},
	}, {
		reason: "the commits that showed it are forgotten, and none that is kept does",
		issue:  &v1alpha1.ReviewIssueSpec{CommitSHA: "x"}, reviewed: reviewed("a", "b"),
		want: reviewstate.Observed{State: resolved},
	}, {
		reason: "they are about to be forgotten: the review still keeps the last of them",
		issue:  &v1alpha1.ReviewIssueSpec{CommitSHA: "a"}, reviewed: reviewed("a", "b"),
		want: reviewstate.Observed{State: resolved, ResolvedBy: "b", ResolvedAt: at(1), FirstSeenAt: at(0), LastSeenAt: at(0)},
	}, {
		reason: "the first of them is reviewed again and is not listed: it no longer shows what an import wrote",
		issue:  &v1alpha1.ReviewIssueSpec{CommitSHA: "c", Result: &v1alpha1.ReviewIssueResult{}}, reviewed: reviewed("a", "b", "c"),
		want: reviewstate.Observed{State: resolved},
	}, {
		reason: "a person's issue may name its only commit in commitSHA alone",
		issue:  &v1alpha1.ReviewIssueSpec{CommitSHA: "c"}, reviewed: reviewed("a", "b", "c"),
		want: reviewstate.Observed{State: open, FirstSeenAt: at(2), LastSeenAt: at(2)},
	}, {
		reason: "so it may if no other commit was reviewed",
		issue:  &v1alpha1.ReviewIssueSpec{CommitSHA: "a"}, reviewed: reviewed("a"),
		want: reviewstate.Observed{State: open, FirstSeenAt: at(0), LastSeenAt: at(0)},
	}, {
		reason: "without a reviewed commit nothing can have been forgotten",
		issue:  &v1alpha1.ReviewIssueSpec{CommitSHA: "x"},
		want:   reviewstate.Observed{State: open},
	}, {
		reason: "a new issue, whose commit the importer has yet to add to the review",
		issue:  &v1alpha1.ReviewIssueSpec{CommitSHA: "c", SeenInCommits: []v1alpha1.CommitSHA{"c"}}, reviewed: reviewed("a", "b"),
		want: reviewstate.Observed{State: open},
	}}
	for _, c := range cases {
		harness.Same(t, c.reason, c.want, reviewstate.Observe(c.issue, c.reviewed))
	}
}

// An issue is open exactly when the last reviewed commit shows it or none does, whatever the order of seenInCommits.
func TestAnIssueIsResolvedByTheCommitAfterTheLastThatShowsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 8).Draw(t, "commits")
		var commits []string
		var seen []v1alpha1.CommitSHA
		last := -1
		for i := range n {
			sha := fmt.Sprintf("c%d", i)
			commits = append(commits, sha)
			if rapid.Bool().Draw(t, "seen") {
				seen = append(seen, v1alpha1.CommitSHA(sha))
				last = i
			}
		}
		seen = rapid.Permutation(seen).Draw(t, "order")
		got := reviewstate.Observe(seenIn(seen...), reviewed(commits...))
		wantResolved := last >= 0 && last < n-1
		if (got.State == v1alpha1.ReviewIssueResolved) != wantResolved {
			t.Fatalf("seen %v of %v: got %q", seen, commits, got.State)
		}
		if wantResolved && got.ResolvedBy != commits[last+1] {
			t.Fatalf("seen %v of %v: resolved by %q, want %q", seen, commits, got.ResolvedBy, commits[last+1])
		}
	})
}

func TestResolvedIssuesCountInNoneOfTheOpenFigures(t *testing.T) {
	issue := func(severity v1alpha1.Level, seen ...v1alpha1.CommitSHA) v1alpha1.ReviewIssueSpec {
		return v1alpha1.ReviewIssueSpec{Severity: severity, SeenInCommits: seen}
	}
	var got reviewstate.Counts
	for _, spec := range []v1alpha1.ReviewIssueSpec{
		issue(v1alpha1.LevelHigh, "b"),
		issue(v1alpha1.LevelHigh, "a"),
		issue(v1alpha1.LevelMedium, "a", "b"),
		issue(v1alpha1.LevelMedium, "b"),
		issue(v1alpha1.LevelLow, "b"),
	} {
		got.AddIssue(&v1alpha1.ReviewIssue{Spec: spec}, reviewed("a", "b"))
	}
	want := reviewstate.Counts{Closed: 1, Open: 4, OpenHigh: 1, OpenMedium: 2, OpenLow: 1}
	harness.Same(t, "resolved issues count in none of the open figures", want, got)
}
