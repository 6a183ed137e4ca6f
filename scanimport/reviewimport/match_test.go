package reviewimport

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// A decision is about the problem that it was made about, and never passes to another one of the same rule, file and
// message. A problem keeps its decision only if it is certainly the same, as in an import.
func TestADecisionStaysWithItsProblem(t *testing.T) {
	for name, tc := range map[string]struct {
		// commits hold the results of each commit; after the first somebody mutes what it shows at line 10.
		commits [][]string
		// want are the issues: line, state, and the decision or the commit that first showed it.
		want []string
	}{
		"another at another line":             {[][]string{{"10 eval"}, {"200 eval"}}, []string{"10 resolved muted", "200 open c1"}},
		"the same line":                       {[][]string{{"10 eval"}, {"10 eval"}}, []string{"10 open muted"}},
		"another before both":                 {[][]string{{"10 eval", "20 eval"}, {"4 eval", "10 eval", "20 eval"}}, []string{"10 open muted", "20 open c0", "4 open c1"}},
		"the first of two is repaired":        {[][]string{{"10 eval", "200 eval"}, {"200 eval"}}, []string{"10 resolved muted", "200 open c0"}},
		"it moves and another appears":        {[][]string{{"10 eval"}, {"13 eval", "200 eval"}}, []string{"10 resolved muted", "13 open c1", "200 open c1"}},
		"all move together":                   {[][]string{{"10 eval", "50 call"}, {"13 eval", "53 call"}}, []string{"13 open muted", "53 open c0"}},
		"the code moves":                      {[][]string{{"10 eval:f(x)"}, {"213 eval:f(x)"}}, []string{"213 open muted"}},
		"other code":                          {[][]string{{"10 eval:f(x)"}, {"10 eval:g(x)"}}, []string{"10 open c1", "10 resolved muted"}},
		"the code moves and there is another": {[][]string{{"10 eval:f(x)"}, {"13 eval:f(x)", "200 eval:f(x)"}}, []string{"10 resolved muted", "13 open c1", "200 open c1"}},
		"the code is repaired in one of two":  {[][]string{{"10 eval:f(x)", "200 eval:f(x)"}, {"203 eval:f(x)"}}, []string{"10 resolved muted", "200 resolved c0", "203 open c1"}},
		"it comes back":                       {[][]string{{"10 eval"}, {"200 eval"}, {"10 eval", "200 eval"}}, []string{"10 open muted", "200 open c1"}},
		"the other one moves on":              {[][]string{{"10 eval"}, {"200 eval"}, {"203 eval"}}, []string{"10 resolved muted", "203 open c1"}},
		"its code comes back elsewhere":       {[][]string{{"10 eval:f(x)"}, nil, {"13 eval:f(x)"}}, []string{"13 open muted"}},
		"all come back at other lines":        {[][]string{{"10 eval", "50 call"}, nil, {"13 eval", "53 call"}}, []string{"10 resolved muted", "13 open c2", "53 open c0"}},
		"an earlier commit once more":         {[][]string{{"10 eval", "50 call"}, {"13 eval", "53 call"}, nil}, []string{"13 resolved muted", "53 resolved c0"}},
	} {
		c := newCluster()
		for i, places := range tc.commits {
			c.importsResults(t, fmt.Sprintf("c%d", i), results(places...), nil)
			if i == 0 {
				c.mute(10)
			}
		}
		before := c.clone()
		c.importsResults(t, "c0", results(tc.commits[0]...), nil)
		harness.Same(t, name+": the first commit once more", before, c, cmp.AllowUnexported(cluster{}))
		harness.Same(t, name, tc.want, c.lines())
	}
}

// Each tool may send a file of its own for a commit. Until ESLint's comes, its issues are not shown by the commit.
func TestADecisionStaysIfAnotherFileForTheCommitComesFirst(t *testing.T) {
	c := newCluster()
	c.importsResults(t, "c0", results("10 eval", "50 call"), nil)
	c.mute(10)
	c.importsResults(t, "c1", resultsOf("gosec", "5 x"), nil)
	s := c.importsResults(t, "c1", results("13 eval", "53 call"), nil)
	harness.Same(t, "issues", []string{"13 open muted", "5 open c1", "53 open c0"}, c.lines())
	harness.Same(t, "created, reopened, seen", [3]int{0, 0, 2}, [3]int{s.Created, s.Reopened, s.Seen})
	for _, issue := range s.Issues {
		harness.Same(t, issue.Place+" is new", issue.Place == "app/a.js:5", issue.New)
	}
}

// The base is compared tool by tool: the others' results are no part of it.
func TestOnlyTheToolsOwnResultsAreLookedFor(t *testing.T) {
	c := newCluster()
	both := slices.Concat(resultsOf("gosec", "5 x"), results("20 eval"))
	c.importsResults(t, "c0", both, nil)
	for i := range both {
		both[i].batch = i
	}
	var there []v1alpha1.ReviewIssue
	for name, spec := range c.issues {
		there = append(there, v1alpha1.ReviewIssue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
	}
	p := &plan{commit: "c1", before: c.review.ReviewedCommits}
	harness.Same(t, "open issues", importer.Distances{{Batch: 1}: 0}, p.own(both, there, "ESLint")(nil))
	again := slices.Concat(both, both[1:]) // by another analysis
	again[2].batch = 2
	harness.Same(t, "open issues of two analyses", importer.Distances{{Batch: 1}: 0, {Batch: 2}: 0}, p.own(again, there, "ESLint")(nil))
	p.before = append(p.before, v1alpha1.ReviewedCommit{SHA: "no longer"})
	harness.Same(t, "resolved issues", importer.Distances{}, p.own(both, there, "ESLint")(nil))
}

// A scanner may report under another of its names, or under one that the user gives.
func TestADecisionStaysWithItsProblemUnderAnotherNameOfTheTool(t *testing.T) {
	for _, tc := range []struct {
		reason, first, second string
		renamed               map[string]string
		want                  []string
	}{
		{"a known name", "Semgrep OSS", "Semgrep PRO", nil, []string{"10 open muted"}},
		{"the name is given", "lint", "ESLint", map[string]string{"lint": "ESLint"}, []string{"10 open muted"}},
		{"another tool", "lint", "ESLint", nil, []string{"10 open c1", "10 resolved muted"}},
	} {
		c := newCluster()
		c.renamed = tc.renamed
		c.importsResults(t, "c0", resultsOf(tc.first, "10 eval:f(x)"), nil)
		c.mute(10)
		c.importsResults(t, "c1", resultsOf(tc.second, "10 eval:f(x)"), nil)
		harness.Same(t, tc.reason, tc.want, c.lines())
	}
}

// Two jobs may report two names of one tool for the same commit.
func TestADecisionStaysIfOneOfTwoNamesOfTheToolIsLeft(t *testing.T) {
	first, second := resultsOf("Semgrep OSS", "10 eval:f(x)"), resultsOf("Semgrep PRO", "10 eval:f(x)")
	for _, decided := range []string{first[0].Name, second[0].Name} {
		c := newCluster()
		c.importsResults(t, "c0", slices.Concat(first, second), nil)
		issue := c.issues[decided]
		issue.Triage.UserStatus = v1alpha1.UserStatusMuted
		c.issues[decided] = issue
		c.importsResults(t, "c1", second, nil)
		harness.Same(t, decided, []string{"10 open muted", "10 resolved c0"}, c.lines())
	}
}

// A person who commented is no author of a decision that an undo may restore.
func TestACommentPutsNoIssueInDoubt(t *testing.T) {
	both := batchOf("ESLint", "10 eval:f(x)", "10 eval:f(x)")
	for i := range both.Results {
		both.Results[i].Related = []sarif.Location{{Path: "c.js", Line: int32(i + 1)}}
	}
	for _, commented := range describedBy(both) {
		c := newCluster()
		c.importsResults(t, "c0", describedBy(both), nil)
		issue := c.issues[commented.Name]
		issue.Triage.By, issue.Triage.Comments = "ann", "Repair it later."
		c.issues[commented.Name] = issue
		one := *both
		one.Results = both.Results[:1]
		c.importsResults(t, "c1", describedBy(&one), nil)
		harness.Same(t, "one of two is left", []string{"10 open c0", "10 resolved c0"}, c.lines())
	}
}

// Several issues of one commit may have the same evidence, if decisions about the earlier ones do not cover the later.
func TestAResultIsTheIssueWhoseDecisionCoversIt(t *testing.T) {
	c := newCluster()
	for _, file := range [][]found{
		rated("low", "", "1", ""), rated("medium", "5.0", "1", ""), rated("high", "7.0", "1", ""), rated("high", "9.0", "1", ""),
		rated("high", "9.1", "1", ""), rated("high", "8.0", "1", ""), rated("medium", "6.0", "1", ""), rated("low", "2.0", "1", ""),
	} {
		c.importsResults(t, "c0", file, nil)
		c.mute(10)
		c.importsResults(t, "c0", file, nil)
	}
	harness.Same(t, "one issue for each severity", 4, len(c.issues))
}

// Many issues are alike, and all are muted: how often the one that is left and got worse is looked for among them does
// not depend on their number.
func TestAResultIsLookedForAFewTimesAmongIssuesThatAreAlike(t *testing.T) {
	const many = 300
	places := slices.Repeat([]string{"10 eval:f(x)"}, many)
	batch := batchOf("ESLint", places...)
	for i := range batch.Results {
		batch.Results[i].Location.Column, batch.Results[i].Severity = int32(i+1), v1alpha1.LevelLow
	}
	c := newCluster()
	c.importsResults(t, "c0", describedBy(batch), nil)
	c.mute(10)
	batch.Results = batch.Results[:1]
	batch.Results[0].Severity = v1alpha1.LevelHigh
	for _, reason := range []string{"worse", "the same once more"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s := c.importsResults(t, "c1", describedBy(batch), nil)
		runtime.ReadMemStats(&after)
		harness.Same(t, reason+": open, issues", [2]int{1, many + 1}, [2]int{s.Open, len(c.issues)})
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<20 {
			t.Errorf("%s: %d MB are allocated", reason, allocated>>20)
		}
	}
}

// Of several at one place, all muted, one is rated higher. Once decided, its issue is found again, however many muted
// ones are alike.
func TestADecisionAboutTheWorseOfManyAlikeStaysWithItsIssue(t *testing.T) {
	const many = maxRounds + 4
	batch := batchOf("ESLint", slices.Repeat([]string{"10 eval:f(x)"}, many)...)
	for i := range batch.Results {
		batch.Results[i].Severity = v1alpha1.LevelLow
		batch.Results[i].Related = []sarif.Location{{Path: "c.js", Line: int32(i + 1)}}
	}
	c := newCluster()
	c.importsResults(t, "c0", describedBy(batch), nil)
	c.mute(10)
	batch.Results = batch.Results[:1]
	batch.Results[0].Severity = v1alpha1.LevelHigh
	c.importsResults(t, "worse", describedBy(batch), nil)
	c.mute(10)
	c.importsResults(t, "gone", nil, nil)
	c.importsResults(t, "back", describedBy(batch), nil)
	harness.Same(t, "issues", many+1, len(c.issues))
}

// The problem at line 10 is rated higher. The decisions about the others neither pass to it nor leave theirs.
func TestADecisionDoesNotPassToAProblemElsewhereThatGotWorse(t *testing.T) {
	for _, tc := range []struct {
		reason           string
		first, now, want []string
	}{
		{"the other is repaired", []string{"10 eval:f(x)", "200 eval:f(x)"}, []string{"10 eval:f(x)"},
			[]string{"10 open c1", "10 resolved muted", "200 resolved muted"}},
		{"the other moves", []string{"10 eval:f(x)", "50 eval:f(x)"}, []string{"10 eval:f(x)", "45 eval:f(x)"},
			[]string{"10 open c1", "10 resolved muted", "45 open muted"}},
		{"both move, without code", []string{"10 eval", "50 eval"}, []string{"13 eval", "53 eval"},
			[]string{"10 resolved muted", "13 open c1", "53 open muted"}},
		{"another may be either of two", []string{"10 eval:f(x)", "30 eval:f(x)", "50 eval:f(x)"}, []string{"10 eval:f(x)", "45 eval:f(x)"},
			[]string{"10 open c1", "10 resolved muted", "30 resolved muted", "45 open c1", "50 resolved muted"}},
	} {
		c, first := newCluster(), results(tc.first...)
		for i := range first {
			if first[i].Facts.Details.Location.LineNumber == 10 {
				first[i].Facts.Details.Severity = v1alpha1.LevelLow
			}
		}
		c.importsResults(t, "c0", first, nil)
		for _, f := range first {
			c.mute(f.Facts.Details.Location.LineNumber)
		}
		c.importsResults(t, "c1", results(tc.now...), nil)
		harness.Same(t, tc.reason, tc.want, c.lines())
		before := c.clone()
		c.importsResults(t, "c1", results(tc.now...), nil)
		harness.Same(t, tc.reason+": the same again", before.issues, c.issues)
	}
}

// secretsIn returns a redacted secret for each commit, all at line 10. They differ only in the commit that gitleaks
// names.
func secretsIn(commits ...string) []found {
	batch := &importer.Batch{Tool: "gitleaks", Category: v1alpha1.CategorySecret}
	for i, commit := range commits {
		batch.Results = append(batch.Results, sarif.Result{Index: i, RuleID: "aws-key", Rule: &sarif.Rule{ID: "aws-key"},
			Severity: v1alpha1.LevelHigh, Message: "aws-key has detected secret for file config.py at commit " + commit + ".",
			Location: sarif.Location{Path: "config.py", Line: 10, Column: 5, Snippet: "REDACTED"}})
	}
	return describedBy(batch)
}

// secretWith returns a secret at line 10 in that code.
func secretWith(code string) *importer.Batch {
	batch := &importer.Batch{Tool: "gitleaks", Category: v1alpha1.CategorySecret}
	batch.Results = []sarif.Result{{RuleID: "generic", Rule: &sarif.Rule{ID: "generic"}, Severity: v1alpha1.LevelHigh,
		Message: "generic has detected a secret.", Location: sarif.Location{Path: "app/config.py", Line: 10, Snippet: code}}}
	return batch
}

// Whoever writes the pull request can put a mask beside a secret.
func TestADecisionDoesNotPassToAnotherSecretBesideAMask(t *testing.T) {
	const dummy, secret = `pw = "dummy" # ***`, `pw = "real" # ***`
	c := newCluster()
	c.importsResults(t, "c1", describedBy(secretWith(dummy)), nil)
	c.mute(10)
	c.importsResults(t, "c2", describedBy(secretWith(dummy)), nil)
	harness.Same(t, "the same", []string{"10 open muted"}, c.lines())
	s := c.importsResults(t, "c3", describedBy(secretWith(secret)), nil)
	harness.Same(t, "another", []string{"10 open c3", "10 resolved muted"}, c.lines())
	harness.Same(t, "another: open, created", [2]int{1, 1}, [2]int{s.Open, s.Created})
	harness.Same(t, "the gate passes", false, GateHigh.Judge(s).Passed)
}

// The same decision about both secrets covers the one that is left.
func TestADecisionAboutAllSecretsAtAPlaceStays(t *testing.T) {
	for reason, left := range map[string]string{"the commit is still there": "bbbbbbb", "the commits are squashed": "ccccccc"} {
		c := newCluster()
		c.importsResults(t, "c1", secretsIn("aaaaaaa", "bbbbbbb"), nil)
		c.mute(10)
		c.importsResults(t, "c2", secretsIn(left), nil)
		harness.Same(t, reason, []string{"10 open muted", "10 resolved muted"}, c.lines())
	}
}

// The decision about the first secret, which is gone, does not cover the other.
func TestADecisionDoesNotPassToAnotherSecretAtItsPlace(t *testing.T) {
	for reason, left := range map[string]string{"the commit is still there": "bbbbbbb", "the commits are squashed": "ccccccc"} {
		c := newCluster()
		c.importsResults(t, "c1", secretsIn("aaaaaaa"), nil)
		first := secretsIn("aaaaaaa")[0].Name
		c.mute(10)
		c.importsResults(t, "c2", secretsIn("aaaaaaa", "bbbbbbb"), nil)
		s := c.importsResults(t, "c3", secretsIn(left), nil)
		harness.Same(t, reason+": open issues", 1, s.Open)
		for name, issue := range c.issues {
			if muted := issue.Triage.UserStatus == v1alpha1.UserStatusMuted; muted && c.state(name).State == v1alpha1.ReviewIssueOpen {
				t.Errorf("%s: %s, the muted issue of %s, is open", reason, name, first)
			}
		}
		before := c.clone()
		c.importsResults(t, "c3", secretsIn(left), nil)
		harness.Same(t, reason+": the same again", before.issues, c.issues)
	}
}

func TestOfTwoAnalysesTheMoreSevereResultIsShown(t *testing.T) {
	low, high := rated("low", "", "1", "a"), rated("high", "", "1", "b")
	otherVersion := rated("low", "", "2", "a")
	for reason, both := range map[string][]found{
		"the lower first": slices.Concat(low, high), "the higher first": slices.Concat(high, low),
		"the lower first, of another version": slices.Concat(otherVersion, high), "the higher first, of another version": slices.Concat(high, otherVersion),
	} {
		c := newCluster()
		c.importsResults(t, "c0", both, nil)
		for _, issue := range c.issues {
			harness.Same(t, reason, v1alpha1.LevelHigh, issue.Severity)
		}
	}
}

// A result that is in doubt gets the first name that belongs to no decided issue and to none that cannot be read, and it
// keeps that name.
func TestAResultInDoubtGetsAFreeName(t *testing.T) {
	name := results("10 eval")[0].Name
	second, third := fingerprints.Next(name, 1), fingerprints.Next(name, 2)
	muted := v1alpha1.ReviewIssueTriage{UserStatus: v1alpha1.UserStatusMuted}
	ended := muted
	ended.ExpiresAt = &v1alpha1.Time{}
	for _, tc := range []struct {
		reason     string
		triage     v1alpha1.ReviewIssueTriage
		unreadable []string
		want       string
	}{
		{"nobody has decided about the first", v1alpha1.ReviewIssueTriage{}, nil, name},
		{"the first is decided", muted, nil, second},
		{"the decision about the first has ended", ended, nil, second},
		{"the first has a comment", v1alpha1.ReviewIssueTriage{Comments: "Rotated."}, nil, second},
		{"the second cannot be read", muted, []string{second}, third},
		{"others cannot be read", muted, []string{"i-x", third}, second},
	} {
		c := newCluster()
		c.importsResults(t, "c0", results("10 eval"), nil)
		issue := c.issues[name]
		issue.Triage = tc.triage
		c.issues[name] = issue
		c.unreadable = tc.unreadable
		for _, commit := range []string{"c1", "c1", "c2"} {
			c.importsResults(t, commit, results("200 eval"), nil)
			if got := c.issues[tc.want]; got.Line != 200 || c.state(tc.want).State != v1alpha1.ReviewIssueOpen {
				t.Errorf("%s: after %s, %s is at line %d, want 200: %v", tc.reason, commit, tc.want, got.Line, c.issues)
			}
		}
	}
}

// Of two problems that differ in their line one is left, and the issue of the first cannot be read.
func TestTheResultOfAnIssueThatCannotBeReadGetsNoDecision(t *testing.T) {
	for _, tc := range []struct {
		reason, now string
		want        []string
		again       int // open issues after the same once more
	}{
		{"it may be the first", "13 eval:f(x)", []string{"200 resolved muted"}, 1},
		{"it is at the line of the second", "200 eval:f(x)", []string{"200 open muted"}, 2},
	} {
		c := newCluster()
		both := results("10 eval:f(x)", "200 eval:f(x)")
		c.importsResults(t, "c0", both, nil)
		c.mute(200)
		for name, issue := range c.issues {
			if issue.Line == 10 {
				delete(c.issues, name)
				c.unreadable = []string{name}
			}
		}
		s := c.importsResults(t, "c1", results(tc.now), nil)
		harness.Same(t, tc.reason, tc.want, c.lines())
		harness.Same(t, tc.reason+": open, listed", [2]int{1, 1}, [2]int{s.Open, len(s.Issues)})
		harness.Same(t, tc.reason+": open in the same once more", tc.again, c.importsResults(t, "c1", results(tc.now), nil).Open)
	}
}

// The name of an issue that cannot be read may also be one of another result, which has an issue of its own.
func TestAnIssueThatCannotBeReadResolvesNoOther(t *testing.T) {
	name := results("10 eval")[0].Name
	second := fingerprints.Next(name, 1)
	c := newCluster()
	c.importsResults(t, "c0", results("10 eval"), nil)
	c.mute(10)
	c.importsResults(t, "c1", results("200 eval"), nil)
	delete(c.issues, name)
	c.unreadable = []string{name}
	for i, places := range [][]string{{"200 eval"}, {"10 eval", "200 eval"}} {
		s := c.importsResults(t, fmt.Sprintf("c%d", i+2), results(places...), nil)
		if s.Open != len(places) || len(c.issues) != 1 || c.state(second).State != v1alpha1.ReviewIssueOpen {
			t.Errorf("%v: %d are open; %s is %+v of %d issues", places, s.Open, second, c.state(second), len(c.issues))
		}
	}
}

// An earlier version stored no evidence of issues. Their key or their place shows that they are the same.
func TestADecisionOfAnEarlierVersionStaysWithItsProblem(t *testing.T) {
	another := []string{"10 resolved muted", "200 open c1"}
	for _, tc := range []struct {
		first, second []string
		noKey         bool
		want          []string
	}{
		{[]string{"10 eval"}, []string{"10 eval"}, false, []string{"10 open muted"}},
		{[]string{"10 eval"}, []string{"10 eval"}, true, []string{"10 open muted"}},
		{[]string{"10 eval"}, []string{"200 eval"}, false, another},
		{[]string{"10 eval:f(x)"}, []string{"200 eval:f(x)"}, false, []string{"200 open muted"}},
		{[]string{"10 eval:f(x)"}, []string{"200 eval:f(x)"}, true, another},
		{[]string{"10 eval:f(x)"}, []string{"200 eval:g(x)"}, false, another},
		{[]string{"10 eval:f(x)"}, []string{"10 eval:f(x)", "200 eval:f(x)"}, false, []string{"10 open muted", "200 open c1"}},
		{[]string{"10 eval:f(x)"}, []string{"13 eval:f(x)", "200 eval:f(x)"}, true, []string{"10 resolved muted", "13 open c1", "200 open c1"}},
	} {
		c := newCluster()
		c.importsResults(t, "c0", results(tc.first...), nil)
		c.mute(10)
		for name, issue := range c.issues {
			issue.Result.Evidence = ""
			if tc.noKey {
				issue.Result.Key = ""
			}
			c.issues[name] = issue
		}
		c.importsResults(t, "c1", results(tc.second...), nil)
		harness.Same(t, fmt.Sprintf("%s, then %s, without its key %t", tc.first, tc.second, tc.noKey), tc.want, c.lines())
	}
}

// Two problems at one place may differ only in what no evidence holds. The results of a review are not divided by
// analysis, so that an analysis does not tell them apart.
func TestADecisionDoesNotPassToAProblemOfAnotherAnalysis(t *testing.T) {
	run := func(id string, related int32) sarif.Run {
		return sarif.Run{Tool: "codeql", AutomationID: id, Results: []sarif.Result{{
			RuleID: "sqli", Rule: &sarif.Rule{ID: "sqli"}, Severity: "high", Message: "sql", Location: sarif.Location{Path: "a.go", Line: 3, Snippet: "q(x)"},
			Related: []sarif.Location{{Path: "h.go", Line: related}},
		}}}
	}
	c := newCluster()
	c.importsRuns(t, "c0", run("a/1", 10), run("b/1", 20))
	for name, issue := range c.issues {
		if issue.Result.Analysis == "a" {
			issue.Triage.UserStatus = v1alpha1.UserStatusMuted
			c.issues[name] = issue
		}
	}
	c.importsRuns(t, "c1", run("b/2", 20))
	harness.Same(t, "issues", []string{"3 open c0", "3 resolved muted"}, c.lines())
}

func TestAResultOfTwoAnalysesIsOneIssue(t *testing.T) {
	a, b := problem(0), problem(0)
	b.batch = 1
	p := &plan{commit: "c", reviewed: []v1alpha1.ReviewedCommit{{SHA: "c"}}}
	p.match([]found{a, b}, nil)
	s := newSummary(pr, []*importer.Batch{{Tool: "A"}, {Tool: "B"}})
	s.count(p)
	s.list(p)
	if len(p.changes) != 1 || s.Open != 1 || len(s.Issues) != 1 || s.Created != 1 || s.Unchanged != 1 {
		t.Errorf("%d changes: %+v", len(p.changes), s)
	}
	if s.shares[0].Created != 1 || s.shares[1].Created != 0 || s.shares[1].Unchanged != 1 {
		t.Errorf("the batches count %+v and %+v", s.shares[0], s.shares[1])
	}
	s.refused(&p.changes[0], errors.New("too long"))
	if s.Skipped != 2 || s.shares[0].Skipped != 1 || s.shares[1].Skipped != 1 {
		t.Errorf("refused, %d results are skipped, want both", s.Skipped)
	}
}
