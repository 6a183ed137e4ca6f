package reviewimport

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
		Facts: v1alpha1.FindingSpec{
			Details: v1alpha1.FindingDetails{Title: fmt.Sprintf("problem %d", k), Severity: v1alpha1.LevelHigh},
		},
	}}
}

// cluster holds the objects of an API server.
type cluster struct {
	review *v1alpha1.ReviewSpec
	issues map[string]v1alpha1.ReviewIssueSpec
	// unreadable are the names of further issues.
	unreadable []string
	// patterns are those in force when an import created the project of the base; empty if a person created it.
	patterns string
	// anew means that the repository is deleted and created anew once an import has read it.
	anew bool
	// onRead is called with the path of each object and list that is read; may be nil.
	onRead func(path string)
	// renamed are the tools by their former names.
	renamed map[string]string
	// known are the results of the next import that the base has.
	known []found
}

func newCluster() *cluster { return &cluster{issues: map[string]v1alpha1.ReviewIssueSpec{}} }

func (c *cluster) clone() *cluster {
	out := &cluster{review: c.review.DeepCopy(), issues: map[string]v1alpha1.ReviewIssueSpec{}}
	for name, spec := range c.issues {
		out.issues[name] = *spec.DeepCopy()
	}
	return out
}

// imports imports a commit's scan, and returns its summary. written reports which issues are written before the import
// is cut off; nil: all, and then the review.
func (c *cluster) imports(t harness.T, commit string, shows []int, written func(name string) bool) *Summary {
	var results []found
	for _, k := range shows {
		results = append(results, problem(k))
	}
	return c.importsResults(t, commit, results, written)
}

func (c *cluster) importsResults(t harness.T, commit string, results []found, written func(name string) bool) *Summary {
	now := start
	if c.review != nil {
		now = start.Add(time.Duration(len(c.review.ReviewedCommits)) * time.Minute)
	}
	next, err := nextReview(c.review, pr, shop, &Commit{SHA: commit}, now)
	harness.Must(t, err)
	p := &plan{review: Name(pr.Repository, pr.Number), commit: commit, reviewed: next.ReviewedCommits, unreadable: c.unreadable, renamed: c.renamed}
	if c.review != nil {
		p.before = c.review.ReviewedCommits
	}
	var there []v1alpha1.ReviewIssue
	for name, spec := range c.issues {
		there = append(there, v1alpha1.ReviewIssue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
			Status: v1alpha1.ReviewIssueStatus{EndedAt: spec.Triage.ExpiresAt}}) // what may end has ended
	}
	p.match(results, there)
	p.markKnownInBase(c.known)
	s := newSummary(pr, []*importer.Batch{{}})
	s.count(p)
	for i := range p.changes {
		if written == nil || written(p.changes[i].name) {
			next := p.next(p.changes[i].before, p.changes[i].found)
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
	c, h := newCluster(), history{}
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
		c, h := newCluster(), history{}
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
			harness.Same(t, fmt.Sprintf("step %d: the same again", step), before, c, cmp.AllowUnexported(cluster{}))
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

func resultsOf(tool string, places ...string) []found { return describedBy(batchOf(tool, places...)) }

func describedBy(batch *importer.Batch) []found {
	batches := []*importer.Batch{batch}
	found, err := describe(shop, "c", pr.Project, batches, newSummary(pr, batches))
	if err != nil {
		panic(err)
	}
	return found
}

func batchOf(tool string, places ...string) *importer.Batch {
	batch := &importer.Batch{Tool: tool, Category: v1alpha1.CategoryCode}
	for i, place := range places {
		r := sarif.Result{Index: i, RuleID: "no-eval", Rule: &sarif.Rule{ID: "no-eval"}, Severity: v1alpha1.LevelHigh, Location: sarif.Location{Path: "app/a.js", Column: 5}}
		place, r.Detail, _ = strings.Cut(place, "@")
		place, code, _ := strings.Cut(place, ":")
		fmt.Sscan(place, &r.Location.Line, &r.Message) //nolint:errcheck // written below
		r.Location.Snippet = code
		batch.Results = append(batch.Results, r)
	}
	return batch
}

// rated returns a result at line 10 with that severity.
func rated(severity v1alpha1.Level, score, version, analysis string) []found {
	f := results("10 eval:f(x)")
	facts := &f[0].Facts
	facts.Details.Severity, facts.Details.Score, facts.Analysis = severity, score, analysis
	facts.Package = &v1alpha1.FindingPackage{Name: "ssl", Version: version}
	f[0].result = resultOf(facts, "")
	return f
}

// Policies and decisions read an issue in the form of a finding: they would read a fact that it does not keep as empty.
func TestAnIssueKeepsTheFactsThatPoliciesRead(t *testing.T) {
	var f found
	fill(reflect.ValueOf(&f.Facts).Elem())
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&f.Facts)
	harness.Must(t, err)
	f.result = resultOf(&f.Facts, "shop")
	issue := &v1alpha1.ReviewIssue{Spec: f.shownBy(v1alpha1.ReviewIssueSpec{}, nil)}
	kept := reviewstate.Facts(issue, &v1alpha1.ReviewSpec{RepositoryRef: f.Facts.RepositoryRef}).Spec
	got, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&kept)
	harness.Must(t, err)
	harness.Same(t, "members of a finding that an issue lacks. Add one that policies read to ReviewIssueResult, resultOf "+
		"and reviewstate.Facts, any other to this list", []string{
		"agent", "closed", "commitHash", "details.code", "details.endpointLocations", "details.exploitFeasibility",
		"details.exploitWalkthrough", "details.fixedCode", "details.location.className",
		"details.location.functionSignature", "details.location.hash", "details.location.methodName", "details.location.url",
		"details.remediation", "details.remediationEffort", "details.supportingFiles", "details.validationEvidence",
		"detectedAt", "doubt", "scan", "suppression", "triage",
	}, missing(want, got))
}

// fill sets every member of the value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[v1alpha1.Time]() {
			v.Set(reflect.ValueOf(v1alpha1.NewTime(start)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(1)
	}
}

// missing returns the members that only the first spec of a finding has, also those of its objects.
func missing(want, got map[string]any) (names []string) {
	for name, value := range want {
		object, is := value.(map[string]any)
		switch {
		case got[name] == nil:
			names = append(names, name)
		case is:
			for _, member := range missing(object, got[name].(map[string]any)) {
				names = append(names, name+"."+member)
			}
		}
	}
	slices.Sort(names)
	return names
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
		c := newCluster()
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
	low, high, critical := rated("low", "", "1", "a"), rated("high", "", "1", "b"), rated("high", "", "1", "b")
	critical[0].Facts.Details.ToolSeverity, critical[0].result.ToolSeverity = "critical", "critical"
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
		{"below the tool's critical and back", "muted", []file{{"c0", critical}, {"c1", high}, {"c2", critical}}, "high", ""},
		{"two analyses", "muted", []file{{"c0", low}, {"c0", high}, {"c1", low}, {"c1", high}, {"c2", low}, {"c2", high}}, "high", ""},
		{"a confirmed one, up", "active", []file{{"c0", low}, {"c1", high}}, "high", ""},
		{"a confirmed one, down", "active", []file{{"c0", high}, {"c1", low}}, "low", ""},
		{"a confirmed one, another version", "active", []file{{"c0", low}, {"c1", rated("low", "", "2", "a")}}, "low", ""},
	} {
		c := newCluster()
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

// A commit may be scanned once more, with other rules. The gate judges what the last file says.
func TestAnotherFileForTheLastCommitReplacesWhatItsIssuesShow(t *testing.T) {
	rated := func(severity v1alpha1.Level, analysis, place string) []found {
		f := results(place)
		f[0].Facts.Details.Severity, f[0].result.Analysis = severity, analysis
		return f
	}
	c := newCluster()
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

// Two jobs may review a commit with one tool, each in an analysis of its own.
func TestAJobOfAnotherAnalysisDoesNotPassTheGateOfTheFirst(t *testing.T) {
	run := func(id, rule string, severity v1alpha1.Level) sarif.Run {
		return sarif.Run{Tool: "trivy", AutomationID: id, Results: []sarif.Result{{
			RuleID: rule, Rule: &sarif.Rule{ID: rule}, Severity: severity, Message: "ssl", Location: sarif.Location{Path: "go.mod", Line: 3},
		}}}
	}
	c := newCluster()
	for _, step := range []struct {
		reason   string
		runs     []sarif.Run
		passed   bool
		analyses []string // of the issues
	}{
		{"the first", []sarif.Run{run("image-a/1", "CVE-1", "high")}, false, []string{"image-a"}},
		{"another rates it lower", []sarif.Run{run("image-b/1", "CVE-1", "low")}, false, []string{"image-a"}},
		{"a file of two others", []sarif.Run{run("image-b/1", "CVE-1", "low"), run("image-c/1", "CVE-2", "low")}, false, []string{"image-a", "image-c"}},
		{"the first rates it lower", []sarif.Run{run("image-a/2", "CVE-1", "medium")}, true, []string{"image-a", "image-c"}},
		{"another rates it higher", []sarif.Run{run("image-b/2", "CVE-1", "high")}, false, []string{"image-b", "image-c"}},
	} {
		s := c.importsRuns(t, "c0", step.runs...)
		harness.Same(t, step.reason+": the gate passed", step.passed, GateHigh.Judge(s).Passed)
		var analyses []string
		for _, issue := range c.issues {
			analyses = append(analyses, issue.Result.Analysis)
		}
		slices.Sort(analyses)
		harness.Same(t, step.reason+": analyses of the issues", step.analyses, analyses)
	}
}

// importsRuns imports a file with runs of one tool. It chooses no analysis for the batch, as no caller does.
func (c *cluster) importsRuns(t harness.T, commit string, runs ...sarif.Run) *Summary {
	t.Helper()
	batches, err := importer.Collect([]importer.File{{Name: "f", Log: &sarif.Log{Runs: runs}}}, importer.Choices{Analysis: new(string)}, time.Now())
	harness.Must(t, err)
	return c.importsResults(t, commit, describedBy(batches[0]), nil)
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

func TestTheOldestCommitsMakeRoomAndTheirIssuesStayResolved(t *testing.T) {
	c := newCluster()
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
	c := newCluster()
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
		"of 1970":         {"no pull request is as old: a program had no time", time.Unix(0, 0), start, nil, time.Time{}},
		"in the future":   {"every later review would be refused", start.Add(6 * time.Minute), start, before, time.Time{}},
	} {
		got, err := reviewedAt(&Commit{SHA: "b", ReviewedAt: tc.given}, tc.reviewed, tc.now)
		if (err != nil) != tc.want.IsZero() || err == nil && !got.Time.Equal(tc.want) {
			t.Errorf("%s: %s, error %v, want %s: %s", name, got, err, tc.want, tc.reason)
		}
	}
}

func TestACommitIsThatOfTheReview(t *testing.T) {
	const one, other = "8f3e1c2d4b5a69788796a5b4c3d2e1f001234567", "8f3e1c2dffffffff8796a5b4c3d2e1f001234567"
	for _, tc := range []struct{ reason, recorded, given, want string }{
		{"no other is recorded", "", one, one},
		{"another is recorded", other, one, one},
		{"it is recorded", one + " " + other, one, one},
		{"it is recorded shortened", "8f3e1c2d 1234567", one, "8f3e1c2d"},
		{"it is recorded in full", one + " 1234567", "8f3e1c2", one},
		{"it is recorded as if it were two, and the last counts", "8f3e1c2d " + one, "8f3e1c2d", one},
		{"the same, in the other order", one + " 8f3e1c2d", one, "8f3e1c2d"},
		{"two have this beginning", other + " " + one, "8f3e1c2d", ""},
		{"two have it, and it is recorded", other + " 8f3e1c2d " + one, "8f3e1c2d", ""},
		{"too short for a hash", "8f3e1c", one, one},
	} {
		var reviewed []v1alpha1.ReviewedCommit
		for _, sha := range strings.Fields(tc.recorded) {
			reviewed = append(reviewed, v1alpha1.ReviewedCommit{SHA: sha})
		}
		got, err := (&Commit{SHA: tc.given, ReviewedAt: start}).recordedAs(reviewed)
		if tc.want == "" {
			harness.ErrorContains(t, tc.reason, err, "give its full hash")
			continue
		}
		harness.NoError(t, tc.reason, err)
		harness.Same(t, tc.reason, &Commit{SHA: tc.want, ReviewedAt: start}, got)
	}
}

func TestAPullRequestKeepsWhatIsNotSaidAnew(t *testing.T) {
	first, err := nextReview(nil, pr, shop, nil, start)
	if err != nil || first.Provider != "github" || first.PRStatus != v1alpha1.PullRequestOpen || first.PRNumber != 7 || first.RepositoryRef.Name != "shop" {
		t.Fatalf("at first: %+v, %v", first, err)
	}
	first.PRTitle, first.PRAuthor, first.PRStatus = "title", "jo", v1alpha1.PullRequestClosed
	same, err := nextReview(&first, pr, shop, nil, start)
	harness.Must(t, err)
	harness.Same(t, "nothing is said anew", first, same)
	said := pr
	said.Title, said.Author, said.Provider, said.Status = "other", "al", "gitlab", v1alpha1.PullRequestMerged
	other, err := nextReview(&first, said, shop, nil, start)
	if err != nil || other.PRTitle != "other" || other.PRAuthor != "al" || other.Provider != "gitlab" || other.PRStatus != v1alpha1.PullRequestMerged {
		t.Errorf("all is said anew: %+v, %v", other, err)
	}
	said.Status = v1alpha1.PullRequestClosed
	_, err = nextReview(&other, said, shop, nil, start)
	const merged = "leave out --status (over REST pr_status). If the status was recorded by mistake, have a cluster " +
		"administrator delete the review"
	harness.ErrorContains(t, "a merged pull request that is closed", err, merged+": kubectl delete review "+
		Name("shop", 7)+" -n "+pr.Namespace+"; that also deletes its issues and people's decisions about them")
	said.Server = "https://here"
	_, err = nextReview(&other, said, shop, nil, start)
	harness.ErrorContains(t, "in one of several clusters", err, merged+" at the API server https://here: kubectl delete")
}

// A repository that has moved numbers its pull requests from 1 again. What the base has closed since the earlier one
// would count as known.
func TestTheReviewOfAnEarlierPullRequestTakesNoCommit(t *testing.T) {
	const earlier = ". If the review is that of an earlier pull request with this number, as after a move of the repository, have a cluster administrator delete the review: kubectl delete review "
	for _, tc := range []struct {
		reason          string
		opened          time.Duration // after the review was created
		reviewed        time.Duration // the first commit, after that
		recorded, given string        // providers; the repository's is github
		commit          string
		refused         string
	}{
		{"opened before", -time.Hour, 0, "github", "", "c1", ""},
		{"clocks differ", 4 * time.Minute, 0, "github", "", "c1", ""},
		{"opened later", 6 * time.Minute, 0, "github", "", "c1", "the pull request was opened at 2026-02-01T10:06:00Z, after its review began (2026-02-01T10:00:00Z)"},
		{"opened later, and restored since", -time.Hour, -2 * time.Hour, "github", "", "c1", "opened at 2026-02-01T09:00:00Z, after its review began (2026-02-01T08:00:00Z)"},
		{"opened later, by a wrong clock", 6 * time.Minute, 0, "github", "", "c0", ""},
		{"of another provider", -time.Hour, 0, "gitlab", "", "c1", `its review names the provider "gitlab", but the pull request is at "github"`},
		{"given as of another provider", -time.Hour, 0, "github", "gitlab", "c1", `If it is the same pull request, record the provider "gitlab" first, without a commit: kubectl findings review --repository shop --pr 7 --provider gitlab -n org-acme`},
		{"given as of its provider", -time.Hour, 0, "gitlab", "gitlab", "c1", ""},
		{"written in another way", -time.Hour, 0, "GitHub", "", "c1", ""},
		{"of a provider that is not known", -time.Hour, 0, "", "", "c1", ""},
		{"of another provider, and the commit is known", -time.Hour, 0, "gitlab", "", "c0", ""},
		{"given as one that a shell would change", -time.Hour, 0, "github", "$(id)", "c1", `record the provider "$(id)" first, without a commit. If the review`},
	} {
		c := newCluster()
		c.importsResults(t, "c0", nil, nil)
		c.review.Provider = tc.recorded
		c.review.ReviewedCommits[0].ReviewedAt = v1alpha1.NewTime(start.Add(tc.reviewed))
		pr := pr
		pr.OpenedAt, pr.Provider = start.Add(tc.opened), tc.given
		_, err := New(c.serve(t, nil, start), pr, Options{DryRun: true}).Import(t.Context(), &Commit{SHA: tc.commit}, nil)
		harness.ErrorContains(t, tc.reason, err, tc.refused)
		if tc.refused != "" {
			harness.ErrorContains(t, tc.reason, err, earlier+Name("shop", 7))
		}
	}
}

// Whoever reads that the review is that of another pull request may have it deleted.
func TestATimeAtWhichNoPullRequestWasOpenedIsRefused(t *testing.T) {
	for want, opened := range map[string]time.Time{
		"after its review began":             time.Now().Add(importer.ClockSkew / 2), // clocks differ
		"which is in the future":             time.Now().Add(2 * time.Hour),
		"leave out a time that is not known": time.Unix(0, 0),
	} {
		c := newCluster()
		c.importsResults(t, "c0", nil, nil)
		pr := pr
		pr.OpenedAt = opened
		_, err := New(c.serve(t, nil, start), pr, Options{DryRun: true}).Import(t.Context(), &Commit{SHA: "c1"}, nil)
		harness.ErrorContains(t, opened.String(), err, want)
	}
}

// Existing clusters contain these names: with a different one a pull request would start over.
func TestReviewNamesNeverChange(t *testing.T) {
	harness.Same(t, "name", "r-2v5r7bbr5wgaktrqytlvgo6s3i", Name("shop", 7))
	if Name("shop", 17) == Name("shop1", 7) {
		t.Error("two pull requests have one name")
	}
}
