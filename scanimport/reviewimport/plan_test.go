package reviewimport

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/internal/reviewstate"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var (
	start = time.Date(2026, 2, 1, 10, 0, 0, 0, time.UTC)
	shop  = &v1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec:       v1alpha1.RepositorySpec{Provider: "github", URL: "https://github.com/acme/shop"},
	}
	pr = PullRequest{Namespace: "org-acme", Repository: "shop", Number: 7}
)

// problem returns problem k as a scan of any commit reports it.
func problem(k int) found {
	return found{Described: importer.Described{
		Identity: fingerprints.Identity{Name: fmt.Sprintf("i-%d", k)},
		Details:  v1alpha1.FindingDetails{Title: fmt.Sprintf("problem %d", k), Severity: v1alpha1.LevelHigh},
	}}
}

// cluster holds the objects of an API server.
type cluster struct {
	review *v1alpha1.ReviewSpec
	issues map[string]v1alpha1.ReviewIssueSpec
	// unreadable are the names of further issues.
	unreadable []string
	// renamed are the tools by their former names.
	renamed map[string]string
	// known are the results of the next import that the base has.
	known []found
}

func (c *cluster) clone() *cluster {
	out := &cluster{review: c.review.DeepCopy(), issues: map[string]v1alpha1.ReviewIssueSpec{}}
	for name, spec := range c.issues {
		out.issues[name] = *spec.DeepCopy()
	}
	return out
}

// imports imports a commit's scan, and returns its summary. written reports which issues are written before the import
// is cut off; nil: all, and then the review.
func (c *cluster) imports(t interface{ Fatal(...any) }, commit string, shows []int, written func(name string) bool) *Summary {
	var results []found
	for _, k := range shows {
		results = append(results, problem(k))
	}
	return c.importsResults(t, commit, results, written)
}

func (c *cluster) importsResults(t interface{ Fatal(...any) }, commit string, results []found, written func(name string) bool) *Summary {
	now := start
	if c.review != nil {
		now = start.Add(time.Duration(len(c.review.ReviewedCommits)) * time.Minute)
	}
	next, err := nextReview(c.review, pr, shop, &Commit{SHA: commit}, now)
	if err != nil {
		t.Fatal(err)
	}
	p := &plan{review: Name(pr.Repository, pr.Number), commit: commit, reviewed: next.ReviewedCommits, unreadable: c.unreadable, renamed: c.renamed}
	if c.review != nil {
		p.before = c.review.ReviewedCommits
	}
	var there []v1alpha1.ReviewIssue
	for name, spec := range c.issues {
		there = append(there, v1alpha1.ReviewIssue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
	}
	p.match(results, there)
	p.settle(c.known)
	s := newSummary(pr, []*importer.Batch{{}})
	s.count(p)
	for i := range p.changes {
		if written == nil || written(p.changes[i].name) {
			next := p.of(&p.changes[i])
			s.add(p.action(&p.changes[i], &next), &p.changes[i])
			c.issues[p.changes[i].name] = next
		}
	}
	if written == nil {
		c.review = &next
	}
	return s
}

func (c *cluster) state(name string) reviewstate.Observed {
	spec := c.issues[name]
	return reviewstate.Observe(&spec, c.review.ReviewedCommits)
}

// history is the naive model: what each commit has shown, in the order of the reviews.
type history []struct {
	commit string
	shows  []int
}

func (h history) index(commit string) int {
	return slices.IndexFunc(h, func(r struct {
		commit string
		shows  []int
	}) bool {
		return r.commit == commit
	})
}

func (h *history) add(commit string, shows []int) {
	if i := h.index(commit); i >= 0 {
		(*h)[i].shows = append(slices.Clone((*h)[i].shows), shows...)
		return
	}
	*h = append(*h, struct {
		commit string
		shows  []int
	}{commit, shows})
}

// state returns the expected state of a problem, and whether any completed review has shown it.
func (h history) state(k int) (open bool, resolvedBy string, kept, shown bool) {
	for i := len(h) - 1; i >= 0; i-- {
		if !slices.Contains(h[i].shows, k) {
			continue
		}
		if i == len(h)-1 {
			return true, "", true, true
		}
		return false, h[i+1].commit, i > len(h)-v1alpha1.MaxReviewedCommits, true
	}
	return false, "", false, false
}

const problems = 5

// long returns a review with almost as many commits as a review keeps.
func long(t *testing.T) (*cluster, history) {
	c, h := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}, history{}
	for i := range v1alpha1.MaxReviewedCommits - 3 {
		var shows []int
		for k := range problems {
			if (i+1)%(k+2) == 0 && (i < 3 || k > 1) {
				shows = append(shows, k)
			}
		}
		sha := fmt.Sprintf("long-%d", i)
		c.imports(t, sha, shows, nil)
		h.add(sha, shows)
	}
	return c, h
}

// Whatever commits are reviewed, repeatedly or cut off in the middle, an issue's state is the one that the naive model
// computes, and an incomplete review resolves nothing.
func TestStatesAreThoseOfTheHistory(t *testing.T) {
	longCluster, longHistory := long(t)
	rapid.Check(t, func(t *rapid.T) {
		c, h := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}, history{}
		if rapid.Bool().Draw(t, "long") {
			c, h = longCluster.clone(), slices.Clone(longHistory)
		}
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			commit := fmt.Sprintf("c%d", step)
			again := len(h) > 0 && rapid.IntRange(0, 4).Draw(t, "again") == 0
			if again {
				commit = h[len(h)-1-rapid.IntRange(0, min(len(h), 6)-1).Draw(t, "which")].commit
			}
			shows := rapid.SliceOfNDistinct(rapid.IntRange(0, problems-1), 0, problems, rapid.ID[int]).Draw(t, "shows")
			slices.Sort(shows)
			if c.review != nil && !again && rapid.IntRange(0, 3).Draw(t, "cut off") == 0 {
				before := c.clone()
				c.imports(t, commit, shows, func(string) bool { return rapid.Bool().Draw(t, "written") })
				for name := range before.issues {
					was, is := before.state(name), c.state(name)
					// An issue that was only shown by reviews that were cut off may disappear with the next.
					resolved := was.State == v1alpha1.ReviewIssueOpen && is.State != was.State && was.LastSeenAt != nil
					opened := was.State == v1alpha1.ReviewIssueResolved && is.State != was.State && was.ResolvedBy != "" && len(c.review.ReviewedCommits) < v1alpha1.MaxReviewedCommits
					if resolved || opened {
						t.Fatalf("step %d: a review that was cut off made %s %s, it was %+v: %+v", step, name, is.State, was, c.issues[name])
					}
				}
				continue
			}
			s := c.imports(t, commit, shows, nil)
			h.add(commit, shows)
			check(t, step, c, h)
			if h.index(commit) >= len(h)-v1alpha1.MaxReviewedCommits {
				want := slices.Sorted(slices.Values(h[h.index(commit)].shows))
				if n := len(slices.Compact(want)); s.Open != n || s.OpenHigh != n || len(s.Warnings) != map[bool]int{true: 1}[h.index(commit) < len(h)-1] {
					t.Fatalf("step %d: %s shows %v, and the gate judges %+v", step, commit, want, s)
				}
			}

			before := c.clone()
			c.imports(t, commit, shows, nil)
			if diff := cmp.Diff(before, c, cmp.AllowUnexported(cluster{})); diff != "" {
				t.Fatalf("step %d: the same again changes (-before +after):\n%s", step, diff)
			}
		}
	})
}

func check(t *rapid.T, step int, c *cluster, h history) {
	if n := len(c.review.ReviewedCommits); n != min(len(h), v1alpha1.MaxReviewedCommits) {
		t.Fatalf("step %d: %d commits are kept of %d", step, n, len(h))
	}
	for k := range problems {
		name := problem(k).Name
		open, resolvedBy, kept, shown := h.state(k)
		spec, there := c.issues[name]
		if !there {
			if shown {
				t.Fatalf("step %d: %s was shown and is not there", step, name)
			}
			continue
		}
		got := c.state(name)
		if (got.State == v1alpha1.ReviewIssueOpen) != open {
			t.Fatalf("step %d: %s is %+v, want open %t: %+v", step, name, got, open, spec)
		}
		if kept && got.ResolvedBy != resolvedBy || !kept && got.ResolvedBy != "" && got.ResolvedBy != resolvedBy {
			t.Fatalf("step %d: %s is resolved by %q, want %q: %+v", step, name, got.ResolvedBy, resolvedBy, spec)
		}
		for _, sha := range spec.SeenInCommits {
			if !contains(c.review.ReviewedCommits, string(sha)) {
				t.Fatalf("step %d: %s names %s, which the review does not keep", step, name, sha)
			}
		}
	}
}

// results returns the results of one rule in app/a.js as a review describes them. Each is given as its line, its
// message and, after a colon, its code.
func results(places ...string) []found { return resultsOf("ESLint", places...) }

func resultsOf(tool string, places ...string) []found {
	batch := &importer.Batch{Tool: tool, Category: v1alpha1.CategoryCode}
	for i, place := range places {
		r := sarif.Result{Index: i, RuleID: "no-eval", Rule: &sarif.Rule{ID: "no-eval"}, Severity: v1alpha1.LevelHigh, Location: sarif.Location{Path: "app/a.js", Column: 5}}
		place, code, _ := strings.Cut(place, ":")
		fmt.Sscan(place, &r.Location.Line, &r.Message) //nolint:errcheck // written below
		r.Location.Snippet = code
		batch.Results = append(batch.Results, r)
	}
	im := &Importer{pr: pr}
	batches := []*importer.Batch{batch}
	found, _, err := im.describe(shop, "c", batches, &importer.Compared{Known: []map[int]bool{{}}}, newSummary(pr, batches))
	if err != nil {
		panic(err)
	}
	return found
}

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
		"all come back at other lines":        {[][]string{{"10 eval", "50 call"}, nil, {"13 eval", "53 call"}}, []string{"10 resolved muted", "13 open c2", "53 open c0"}},
		"an earlier commit once more":         {[][]string{{"10 eval", "50 call"}, {"13 eval", "53 call"}, nil}, []string{"13 resolved muted", "53 resolved c0"}},
	} {
		c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}
		for i, places := range tc.commits {
			c.importsResults(t, fmt.Sprintf("c%d", i), results(places...), nil)
			if i == 0 {
				c.mute(10)
			}
		}
		before := c.clone()
		c.importsResults(t, "c0", results(tc.commits[0]...), nil)
		if diff := cmp.Diff(before, c, cmp.AllowUnexported(cluster{})); diff != "" {
			t.Errorf("%s: the first commit once more changes (-before +after):\n%s", name, diff)
		}
		harness.Same(t, name, tc.want, c.lines())
	}
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
		c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}, renamed: tc.renamed}
		c.importsResults(t, "c0", resultsOf(tc.first, "10 eval:f(x)"), nil)
		c.mute(10)
		c.importsResults(t, "c1", resultsOf(tc.second, "10 eval:f(x)"), nil)
		harness.Same(t, tc.reason, tc.want, c.lines())
	}
}

// rated returns a result at line 10 with that severity.
func rated(severity v1alpha1.Level, score, version, analysis string) []found {
	f := results("10 eval:f(x)")
	facts := &f[0].Facts
	facts.Details.Severity, facts.Details.Score, facts.Analysis = severity, score, analysis
	facts.Package = &v1alpha1.FindingPackage{Name: "ssl", Version: version}
	f[0].Details, f[0].result = facts.Details, resultOf(facts, "")
	return f
}

// Two jobs may report two names of one tool for the same commit.
func TestADecisionStaysIfOneOfTwoNamesOfTheToolIsLeft(t *testing.T) {
	first, second := resultsOf("Semgrep OSS", "10 eval:f(x)"), resultsOf("Semgrep PRO", "10 eval:f(x)")
	for _, decided := range []string{first[0].Name, second[0].Name} {
		c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}
		c.importsResults(t, "c0", slices.Concat(first, second), nil)
		issue := c.issues[decided]
		issue.Triage.UserStatus = v1alpha1.UserStatusMuted
		c.issues[decided] = issue
		c.importsResults(t, "c1", second, nil)
		harness.Same(t, decided, []string{"10 open muted", "10 resolved c0"}, c.lines())
	}
}

// A decision covers the version and the severity that it was made about, and a lower one.
func TestADecisionDoesNotFollowItsProblemToWorseFacts(t *testing.T) {
	kept, another := []string{"10 open muted"}, []string{"10 open c1", "10 resolved muted"}
	for _, tc := range []struct {
		reason     string
		first, now []found
		want       []string
	}{
		{"the same", rated("high", "7.5", "1", ""), rated("high", "7.5", "1", ""), kept},
		{"a lower severity", rated("high", "", "1", ""), rated("medium", "", "1", ""), kept},
		{"a higher severity", rated("medium", "", "1", ""), rated("high", "", "1", ""), another},
		{"a critical one", rated("high", "7.5", "1", ""), rated("high", "9.8", "1", ""), another},
		{"another version", rated("high", "", "1", ""), rated("high", "", "2", ""), another},
		{"no version any more", rated("high", "", "1", ""), rated("high", "", "", ""), kept},
	} {
		c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}
		c.importsResults(t, "c0", tc.first, nil)
		c.mute(10)
		c.importsResults(t, "c1", tc.now, nil)
		harness.Same(t, tc.reason, tc.want, c.lines())
		before := c.clone()
		c.importsResults(t, "c1", tc.now, nil)
		c.importsResults(t, "c0", tc.first, nil)
		harness.Same(t, tc.reason+": both commits again", before.issues, c.issues)
	}
}

// A scanner may rate a problem down and up again, and two analyses may rate it differently. A confirmation covers any
// severity.
func TestADecisionStaysWithAProblemThatIsRatedAnew(t *testing.T) {
	type file struct {
		commit string
		result []found
	}
	low, high := rated("low", "", "1", "a"), rated("high", "", "1", "b")
	for _, tc := range []struct {
		reason   string
		decision v1alpha1.UserStatus
		files    []file // the decision is made after those of c0
		severity v1alpha1.Level
		score    string
	}{
		{"down and up", "muted", []file{{"c0", high}, {"c1", rated("medium", "", "1", "b")}, {"c2", high}}, "high", ""},
		{"down", "muted", []file{{"c0", high}, {"c1", rated("medium", "", "1", "b")}}, "high", ""},
		{"below critical and back", "muted", []file{
			{"c0", rated("high", "9.8", "1", "")}, {"c1", rated("high", "7.5", "1", "")}, {"c2", rated("high", "9.9", "1", "")},
		}, "high", "9.9"},
		{"two analyses", "muted", []file{{"c0", low}, {"c0", high}, {"c1", low}, {"c1", high}, {"c2", low}, {"c2", high}}, "high", ""},
		{"a confirmed one, up", "active", []file{{"c0", low}, {"c1", high}}, "high", ""},
		{"a confirmed one, down", "active", []file{{"c0", high}, {"c1", low}}, "low", ""},
		{"a confirmed one, another version", "active", []file{{"c0", low}, {"c1", rated("low", "", "2", "a")}}, "low", ""},
	} {
		c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}
		for _, f := range tc.files {
			if f.commit != "c0" {
				c.decide(10, tc.decision)
			}
			c.importsResults(t, f.commit, f.result, nil)
		}
		harness.Same(t, tc.reason, []string{"10 open " + string(tc.decision)}, c.lines())
		for _, issue := range c.issues {
			harness.Same(t, tc.reason, []string{string(tc.severity), tc.score}, []string{string(issue.Severity), issue.Result.Score})
		}
	}
}

// Several issues of one commit may have the same evidence, if decisions about the earlier ones do not cover the later.
func TestAResultIsTheIssueWhoseDecisionCoversIt(t *testing.T) {
	c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}
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
		c, first := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}, results(tc.first...)
		for i := range first {
			if first[i].Details.Location.LineNumber == 10 {
				first[i].Details.Severity, first[i].Facts.Details.Severity = v1alpha1.LevelLow, v1alpha1.LevelLow
			}
		}
		c.importsResults(t, "c0", first, nil)
		for _, f := range first {
			c.mute(f.Details.Location.LineNumber)
		}
		c.importsResults(t, "c1", results(tc.now...), nil)
		harness.Same(t, tc.reason, tc.want, c.lines())
		before := c.clone()
		c.importsResults(t, "c1", results(tc.now...), nil)
		harness.Same(t, tc.reason+": the same again", before.issues, c.issues)
	}
}

func TestOfTwoAnalysesTheMoreSevereResultIsShown(t *testing.T) {
	low, high := rated("low", "", "1", "a"), rated("high", "", "1", "b")
	otherVersion := rated("low", "", "2", "a")
	for reason, both := range map[string][]found{
		"the lower first": slices.Concat(low, high), "the higher first": slices.Concat(high, low),
		"the lower first, of another version": slices.Concat(otherVersion, high), "the higher first, of another version": slices.Concat(high, otherVersion),
	} {
		c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}
		c.importsResults(t, "c0", both, nil)
		for _, issue := range c.issues {
			harness.Same(t, reason, v1alpha1.LevelHigh, issue.Severity)
		}
	}
}

// A commit may be scanned once more, with other rules. The gate judges what the last file says.
func TestAnotherFileForTheLastCommitReplacesWhatItsIssuesShow(t *testing.T) {
	rated := func(severity v1alpha1.Level, analysis, place string) []found {
		f := results(place)
		f[0].Details.Severity, f[0].Facts.Details.Severity, f[0].result.Analysis = severity, severity, analysis
		return f
	}
	c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}
	other := rated("low", "a", "12 eval:f(x)")
	other[0].Facts.Tool, other[0].result.Tool = "another", "another"
	c.renamed = map[string]string{"another": "ESLint"}
	for _, step := range []struct {
		reason, commit string
		file           []found
		severity       v1alpha1.Level
		line           int32
		counts         [3]int // created, seen, unchanged
	}{
		{"the first file", "c0", rated("low", "a", "10 eval:f(x)"), "low", 10, [3]int{1, 0, 0}},
		{"more severe, at another line", "c0", rated("high", "a", "12 eval:f(x)"), "high", 12, [3]int{0, 1, 0}},
		{"another analysis rates it lower", "c0", rated("low", "b", "12 eval:f(x)"), "high", 12, [3]int{0, 0, 1}},
		{"another name of the tool rates it lower", "c0", other, "high", 12, [3]int{0, 0, 1}},
		{"less severe again", "c0", rated("medium", "a", "12 eval:f(x)"), "medium", 12, [3]int{0, 1, 0}},
		{"the same", "c0", rated("medium", "a", "12 eval:f(x)"), "medium", 12, [3]int{0, 0, 1}},
		{"another analysis rates it higher", "c0", rated("high", "b", "12 eval:f(x)"), "high", 12, [3]int{0, 1, 0}},
		{"the next commit", "c1", rated("low", "a", "12 eval:f(x)"), "low", 12, [3]int{0, 1, 0}},
	} {
		s := c.importsResults(t, step.commit, step.file, nil)
		harness.Same(t, step.reason, step.counts, [3]int{s.Created, s.Seen, s.Unchanged})
		if len(c.issues) != 1 || len(s.Issues) != 1 || s.Issues[0].Severity != step.severity {
			t.Fatalf("%s: %d issues; the gate judges %+v", step.reason, len(c.issues), s.Issues)
		}
		for _, issue := range c.issues {
			if issue.Severity != step.severity || issue.Line != step.line {
				t.Errorf("%s: the issue is %s at line %d, want %s at %d", step.reason, issue.Severity, issue.Line, step.severity, step.line)
			}
		}
	}
}

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
		c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}
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

// A result that is in doubt gets the first name that belongs to no decided issue and to none that cannot be read, and it
// keeps that name.
func TestAResultInDoubtGetsAFreeName(t *testing.T) {
	name := results("10 eval")[0].Name
	second, third := fingerprints.Next(name, 1), fingerprints.Next(name, 2)
	for _, tc := range []struct {
		reason     string
		decision   v1alpha1.UserStatus
		unreadable []string
		want       string
	}{
		{"nobody has decided about the first", "", nil, name},
		{"the first is decided", v1alpha1.UserStatusMuted, nil, second},
		{"the second cannot be read", v1alpha1.UserStatusMuted, []string{second}, third},
		{"others cannot be read", v1alpha1.UserStatusMuted, []string{"i-x", third}, second},
	} {
		c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}
		c.importsResults(t, "c0", results("10 eval"), nil)
		issue := c.issues[name]
		issue.Triage.UserStatus = tc.decision
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

// The name of an issue that cannot be read may also be one of another result, which has an issue of its own.
func TestAnIssueThatCannotBeReadResolvesNoOther(t *testing.T) {
	name := results("10 eval")[0].Name
	second := fingerprints.Next(name, 1)
	c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}
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

// Of two problems that differ in their line one is left, and the issue of the first cannot be read.
func TestTheResultOfAnIssueThatCannotBeReadGetsNoDecision(t *testing.T) {
	for _, tc := range []struct {
		reason, now string
		want        []string
	}{
		{"it may be the first", "13 eval:f(x)", []string{"200 resolved muted"}},
		{"it is at the line of the second", "200 eval:f(x)", []string{"200 open muted"}},
	} {
		c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}
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
		harness.Same(t, tc.reason, 1, s.Open)
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
		c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}
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
	c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}
	c.importsResults(t, "c0", results("10 eval:f(x)"), nil)
	c.importsResults(t, "c1", results("14 eval:f(x)"), nil)
	c.known = results("10 eval:f(x)")
	if s := c.importsResults(t, "c0", nil, nil); s.Open != 0 {
		t.Errorf("%d open issues", s.Open)
	}
}

// mute decides about the issues at the line.
func (c *cluster) mute(line int32) { c.decide(line, v1alpha1.UserStatusMuted) }

func (c *cluster) decide(line int32, decision v1alpha1.UserStatus) {
	for name, issue := range c.issues {
		if issue.Line == line {
			issue.Triage.UserStatus = decision
			c.issues[name] = issue
		}
	}
}

// lines describes the issues, sorted: line, state, and the decision or the commit that first showed it.
func (c *cluster) lines() (out []string) {
	for name, issue := range c.issues {
		out = append(out, fmt.Sprintf("%d %s %s", issue.Line, c.state(name).State, originOf(&issue)))
	}
	slices.Sort(out)
	return out
}

func originOf(spec *v1alpha1.ReviewIssueSpec) string {
	if spec.Triage.UserStatus != "" {
		return string(spec.Triage.UserStatus)
	}
	return spec.CommitSHA
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

// An earlier version stored no evidence of issues. Their key or their place shows that they are the same.
func TestADecisionOfAnEarlierVersionStaysWithItsProblem(t *testing.T) {
	for _, tc := range []struct{ first, second, want string }{
		{"10 eval", "10 eval", "10 open muted"},
		{"10 eval", "200 eval", "10 resolved muted"},
		{"10 eval:f(x)", "200 eval:f(x)", "200 open muted"},
		{"10 eval:f(x)", "200 eval:g(x)", "10 resolved muted"},
	} {
		c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}
		c.importsResults(t, "c0", results(tc.first), nil)
		name := results(tc.first)[0].Name
		issue := c.issues[name]
		issue.Triage.UserStatus, issue.Result.Evidence = v1alpha1.UserStatusMuted, ""
		c.issues[name] = issue
		c.importsResults(t, "c1", results(tc.second), nil)
		issue = c.issues[name]
		if got := fmt.Sprintf("%d %s %s", issue.Line, c.state(name).State, originOf(&issue)); got != tc.want {
			t.Errorf("%s, then %s: the issue is %s, want %s", tc.first, tc.second, got, tc.want)
		}
	}
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

func TestTheOldestCommitsMakeRoomAndTheirIssuesStayResolved(t *testing.T) {
	c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}
	c.imports(t, "first", []int{0, 1}, nil)
	for i := range v1alpha1.MaxReviewedCommits + 5 {
		c.imports(t, fmt.Sprintf("c%d", i), []int{1}, nil)
		if got := c.state("i-0"); got.State != v1alpha1.ReviewIssueResolved {
			t.Fatalf("after %d more commits the issue is %+v", i+1, got)
		}
	}
	if got := c.issues["i-0"]; len(got.SeenInCommits) != 0 || got.CommitSHA != "first" {
		t.Errorf("the issue that is long gone: seen in %v, first in %q", got.SeenInCommits, got.CommitSHA)
	}
	if got := c.issues["i-1"]; len(got.SeenInCommits) != v1alpha1.MaxReviewedCommits || got.SeenInCommits[0] != "c5" {
		t.Errorf("the issue that stays is seen in %d commits from %s", len(got.SeenInCommits), got.SeenInCommits[0])
	}
	if n, last := len(c.review.ReviewedCommits), c.review.ReviewedCommits[v1alpha1.MaxReviewedCommits-1].SHA; n != v1alpha1.MaxReviewedCommits || last != "c254" {
		t.Errorf("%d commits are kept, the last %s", n, last)
	}
}

// An import that was cut off left an issue, which the base has by now.
func TestAForgottenIssueStaysResolvedWhenItsFirstCommitIsReviewedAgain(t *testing.T) {
	c := &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}}
	c.imports(t, "a", []int{0}, nil)
	c.imports(t, "b", []int{0, 1}, func(name string) bool { return name == "i-1" })
	c.imports(t, "c", []int{0}, nil)
	s := c.imports(t, "b", []int{0}, nil)
	if got := c.state("i-1"); got.State != v1alpha1.ReviewIssueResolved || s.Open != 1 {
		t.Errorf("the issue is %+v, and %d are open", got, s.Open)
	}
}

func TestWhenACommitWasReviewed(t *testing.T) {
	before := []v1alpha1.ReviewedCommit{{SHA: "a", ReviewedAt: v1alpha1.NewTime(start)}}
	for name, tc := range map[string]struct {
		reason   string
		given    time.Time
		now      time.Time
		reviewed []v1alpha1.ReviewedCommit
		want     time.Time // zero: refused
	}{
		"not said":        {"now is as good as any", time.Time{}, start.Add(time.Hour), before, start.Add(time.Hour)},
		"not said, early": {"our clock is behind another's; the order holds", time.Time{}, start.Add(-time.Minute), before, start},
		"said":            {"people know", start.Add(time.Minute), start.Add(time.Hour), before, start.Add(time.Minute)},
		"the same second": {"two pushes at once", start.Add(time.Millisecond), start.Add(time.Hour), before, start},
		"before the last": {"the list is in order", start.Add(-time.Second), start.Add(time.Hour), before, time.Time{}},
		"the first":       {"there is nothing to be before", start.Add(-time.Hour), start, nil, start.Add(-time.Hour)},
		"a little ahead":  {"clocks differ", start.Add(4 * time.Minute), start, before, start.Add(4 * time.Minute)},
		"in the future":   {"every later review would be refused", start.Add(6 * time.Minute), start, before, time.Time{}},
	} {
		got, err := reviewedAt(&Commit{SHA: "b", ReviewedAt: tc.given}, tc.reviewed, tc.now)
		if (err != nil) != tc.want.IsZero() || err == nil && !got.Time.Equal(tc.want) {
			t.Errorf("%s: %s, error %v, want %s: %s", name, got, err, tc.want, tc.reason)
		}
	}
}

func TestAPullRequestKeepsWhatIsNotSaidAnew(t *testing.T) {
	first, err := nextReview(nil, pr, shop, nil, start)
	if err != nil || first.Provider != "github" || first.PRStatus != v1alpha1.PullRequestOpen || first.PRNumber != 7 || first.RepositoryRef.Name != "shop" {
		t.Fatalf("at first: %+v, %v", first, err)
	}
	first.PRTitle, first.PRAuthor, first.PRStatus = "title", "jo", v1alpha1.PullRequestClosed
	same, err := nextReview(&first, pr, shop, nil, start)
	if diff := cmp.Diff(first, same); err != nil || diff != "" {
		t.Errorf("nothing is said anew: error %v (-before +after):\n%s", err, diff)
	}
	said := pr
	said.Title, said.Author, said.Provider, said.Status = "other", "al", "gitlab", v1alpha1.PullRequestMerged
	other, err := nextReview(&first, said, shop, nil, start)
	if err != nil || other.PRTitle != "other" || other.PRAuthor != "al" || other.Provider != "gitlab" || other.PRStatus != v1alpha1.PullRequestMerged {
		t.Errorf("all is said anew: %+v, %v", other, err)
	}
	said.Status = v1alpha1.PullRequestClosed
	if _, err := nextReview(&other, said, shop, nil, start); err == nil {
		t.Error("a merged pull request was closed")
	}
}

// Existing clusters contain these names: with a different one a pull request would start over.
func TestTheNameOfAReviewIsForEver(t *testing.T) {
	if got, want := Name("shop", 7), "r-2v5r7bbr5wgaktrqytlvgo6s3i"; got != want {
		t.Errorf("name %s, want %s", got, want)
	}
	if Name("shop", 17) == Name("shop1", 7) {
		t.Error("two pull requests have one name")
	}
}
