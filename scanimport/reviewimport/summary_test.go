package reviewimport

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// After a forced push back the gate judges the severity that the earlier commit shows. What is stored stays that of the
// later one.
func TestAnEarlierCommitIsJudgedByItsOwnSeverity(t *testing.T) {
	low, medium, high := rated("low", "", "1", "a"), rated("medium", "", "1", "a"), rated("high", "", "1", "a")
	for _, tc := range []struct {
		reason         string
		decision       v1alpha1.UserStatus // made after both commits
		earlier, later []found
		stored, judged v1alpha1.Level
	}{
		{"rated down since", "", high, low, "low", "high"},
		{"rated up since", "", low, high, "high", "low"},
		{"a muted one, rated down since", "muted", high, medium, "medium", "high"},
		{"a muted one, rated up since", "muted", medium, high, "high", "high"},
		{"rated up since by another analysis", "", low, rated("high", "", "1", "b"), "high", "high"},
	} {
		c := newCluster()
		c.importsResults(t, "c0", tc.earlier, nil)
		c.importsResults(t, "c1", tc.later, nil)
		c.decide(10, tc.decision)
		before := c.clone()
		s := c.importsResults(t, "c0", tc.earlier, nil)
		harness.Same(t, tc.reason+": stored", before.issues, c.issues)
		if len(c.issues) != 1 || len(s.Issues) != 1 {
			t.Fatalf("%s: %d issues; the gate judges %+v", tc.reason, len(c.issues), s.Issues)
		}
		for _, issue := range c.issues {
			harness.Same(t, tc.reason, []v1alpha1.Level{tc.stored, tc.judged}, []v1alpha1.Level{issue.Severity, s.Issues[0].Severity})
		}
		harness.Same(t, tc.reason, tc.judged == v1alpha1.LevelHigh, !GateHigh.Judge(s).Passed)
	}
}

// A comment shows the first of them.
func TestTheMostSevereOfManyIssuesAreListed(t *testing.T) {
	c := newCluster()
	c.importsResults(t, "c0", nil, nil)
	batch := batchOf("ESLint", "200 worst")
	for i := range importer.MaxChanges {
		batch.Results = append(batch.Results, batchOf("ESLint", fmt.Sprintf("%d message%d", 10+i, i)).Results...)
		batch.Results[i+1].Severity = v1alpha1.LevelLow
	}
	im := New(c.serve(t, nil, start), pr, Options{DryRun: true})
	s, err := im.Import(t.Context(), &Commit{SHA: "c1", ReviewedAt: start.Add(time.Hour)}, []*importer.Batch{batch})
	harness.Must(t, err)
	harness.Same(t, "open, listed, created, changes", [4]int{importer.MaxChanges + 1, MaxIssues, importer.MaxChanges + 1, importer.MaxChanges},
		[4]int{s.Open, len(s.Issues), s.Created, len(s.Changes)})
	harness.Same(t, "the first one", "app/a.js:200", s.Issues[0].Place)
}

// A client repeats an upload whose answer was lost, and each tool may send a file of its own for a commit.
func TestAnIssueIsNewInEachUploadOfTheCommitThatFirstShowsIt(t *testing.T) {
	c := newCluster()
	c.issues["by-hand"] = v1alpha1.ReviewIssueSpec{Title: "no commit shows it"}
	for _, tc := range []struct {
		reason, commit string
		shows          []found
		stopped        bool
		want           []string
	}{
		{"the first commit", "c0", results("10 eval:f(x)"), false, []string{"app/a.js:10"}},
		{"the first commit once more", "c0", results("10 eval:f(x)"), false, []string{"app/a.js:10"}},
		{"stopped before the commit is recorded", "c1", results("10 eval:f(x)", "50 call"), true, []string{"app/a.js:50"}},
		{"the second try", "c1", results("10 eval:f(x)", "50 call"), false, []string{"app/a.js:50"}},
		{"the third one", "c1", results("10 eval:f(x)", "50 call"), false, []string{"app/a.js:50"}},
		{"another file of the commit", "c1", resultsOf("gosec", "70 x"), false, []string{"app/a.js:50", "app/a.js:70"}},
		{"the next commit", "c2", results("10 eval:f(x)", "50 call"), false, nil},
	} {
		var written func(string) bool // all, and then the commit
		if tc.stopped {
			written = func(string) bool { return true }
		}
		var got []string
		for _, issue := range c.importsResults(t, tc.commit, tc.shows, written).Issues {
			if issue.New {
				got = append(got, issue.Place)
			}
		}
		harness.Same(t, tc.reason, tc.want, got)
	}
}

// The base is scanned after the commit was reviewed. Another import of the commit no longer counts what the base has by
// now, and the next commit resolves it.
func TestAnIssueThatTheBaseHasByNowIsNotCounted(t *testing.T) {
	for _, tc := range []struct {
		reason       string
		left, known  []string
		open, warned int
	}{
		{"all of it", nil, []string{"10 eval:f(x)", "20 call", "30 eval:g(x)"}, 0, 1},
		{"some of it", []string{"30 eval:g(x)"}, []string{"10 eval:f(x)", "20 call"}, 1, 1},
		{"another file of the commit, with the same code elsewhere", nil, []string{"90 eval:f(x)"}, 3, 0},
		{"another file of the commit", nil, nil, 3, 0},
	} {
		c := newCluster()
		c.importsResults(t, "c0", results("10 eval:f(x)", "20 call", "30 eval:g(x)"), nil)
		c.mute(10)
		before := c.clone()
		c.known = results(tc.known...)
		s := c.importsResults(t, "c0", results(tc.left...), nil)
		harness.Same(t, tc.reason+": stored", before.issues, c.issues)
		harness.Same(t, tc.reason, []int{tc.open, tc.open, tc.warned}, []int{s.Open, len(s.Issues), len(s.Warnings)})
		harness.Same(t, tc.reason, tc.open == 0, GateNew.Judge(s).Passed)
		s = c.importsResults(t, "c1", results(tc.left...), nil)
		harness.Same(t, tc.reason+": the next commit", []int{len(tc.left), 0}, []int{s.Open, len(s.Warnings)})
	}
}

// The line of an issue is that of the last commit.
func TestAnIssueThatTheBaseHasByNowIsNotCountedInAnEarlierCommit(t *testing.T) {
	c := newCluster()
	c.importsResults(t, "c0", results("10 eval:f(x)"), nil)
	c.importsResults(t, "c1", results("14 eval:f(x)"), nil)
	c.known = results("10 eval:f(x)")
	harness.Same(t, "open issues", 0, c.importsResults(t, "c0", nil, nil).Open)
}

// An upload per project resolves the issues of the others.
func TestAReviewThatResolvesIssuesOfAnotherProjectWarns(t *testing.T) {
	reviewed := []v1alpha1.ReviewedCommit{{SHA: "a"}, {SHA: "b"}}
	p := &plan{commit: "b", before: reviewed[:1], reviewed: reviewed}
	var there []v1alpha1.ReviewIssue
	for i, project := range []v1alpha1.ResourceName{"web", "web", "api", ""} {
		there = append(there, v1alpha1.ReviewIssue{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("i-%d", i)},
			Spec:       v1alpha1.ReviewIssueSpec{SeenInCommits: []v1alpha1.CommitSHA{"a"}, Result: &v1alpha1.ReviewIssueResult{Project: project}},
		})
	}
	p.match(nil, there)
	for project, want := range map[string]int{"api": 1, "web": 1, "other": 2, "": 0} {
		s := newSummary(pr, nil)
		s.warnOfOthers(p, project)
		if len(s.Warnings) != want || project == "api" && !strings.Contains(s.Warnings[0], "The review of the project api resolves 2 issues of the project web") {
			t.Errorf("a review of %q warns: %q, want %d", project, s.Warnings, want)
		}
	}
}

func TestWarningsOfTheFilesAreShownOnce(t *testing.T) {
	both := []*importer.Batch{{Tool: "lint", Project: "api", Warnings: []string{"a file was not read"}}, {Tool: "lint", Project: "web",
		Warnings: []string{"a file was not read"}}}
	harness.Same(t, "one for both projects", []string{"a file was not read"}, newSummary(PullRequest{}, both).Warnings)
}

// Another file of the commit may have shown it.
func TestAnIssueThatCannotBeReadFailsTheGateOfACommitThatWasReviewedBefore(t *testing.T) {
	c := newCluster()
	c.importsResults(t, "c0", nil, nil)
	c.unreadable = []string{"i-x"}
	for _, commit := range []string{"c0", "c1"} {
		s, passes := c.importsResults(t, commit, nil, nil), commit == "c1"
		harness.Same(t, commit, []bool{passes, passes}, []bool{GateHigh.Judge(s).Passed, len(s.Issues) == 0})
	}
}
