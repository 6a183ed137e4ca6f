package importer

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/recognition"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// If the first import of the base was cut off, its findings are known, but they are not all.
func TestABaseOfWhichNoScanHasSucceededIsNamed(t *testing.T) {
	findings := []v1alpha1.Finding{{}}
	for _, tc := range []struct {
		reason            string
		past              history
		findings          []v1alpha1.Finding
		unscanned, warned int
	}{
		{"never scanned", history{}, nil, 1, 0},
		{"the only scan failed before its first finding", history{"s-1": {}}, nil, 1, 0},
		{"the only scan failed later", history{"s-1": {wrote: true}}, findings, 0, 1},
		{"another succeeded", history{"s-1": {wrote: true}, "s-2": {succeeded: true}}, findings, 0, 0},
		{"its scans are deleted", history{}, findings, 0, 0},
	} {
		out := &Compared{Known: ResultSet{}}
		batches := []*Batch{{Tool: "lint", Category: v1alpha1.CategoryCode}}
		comparison := toolComparison{repository: &v1alpha1.Repository{}, coverage: coverage{batches: batches}, past: tc.past, findings: tc.findings, out: out}
		harness.Must(t, comparison.compare(t.Context()))
		harness.Same(t, tc.reason, []int{tc.unscanned, tc.warned}, []int{len(out.Unscanned), len(out.Warnings)})
		for _, unscanned := range out.Unscanned {
			harness.Same(t, tc.reason, "lint (Code)", unscanned)
		}
		for _, warning := range out.Warnings {
			harness.Contains(t, tc.reason, warning, "No scan of the base with lint (Code) has succeeded yet")
		}
	}
}

// Otherwise a gate fails because of problems that the base has, too, and nobody knows why.
func TestAProjectThatTheBaseNeverScannedIsNamed(t *testing.T) {
	scan := func(name, project string, outcome v1alpha1.ScanOutcome) (s v1alpha1.Scan) {
		s.Name, s.Spec.ProjectRef.Name, s.Spec.Outcome = name, v1alpha1.ResourceName(project), outcome
		return s
	}
	ofWeb := v1alpha1.Finding{}
	ofWeb.Spec.ProjectRef.Name = "web"
	api := []v1alpha1.Scan{scan("s-1", "api", v1alpha1.ScanSucceeded)}
	suppressed := inFile("web/a.go", "x()", 5)
	suppressed.Suppression = &sarif.Suppression{InSource: true}
	inWeb := []sarif.Result{inFile("web/a.go", "x()", 5)}
	for _, tc := range []struct {
		reason   string
		scans    []v1alpha1.Scan
		findings []v1alpha1.Finding
		results  []sarif.Result
		warned   bool
	}{
		{"it has neither a scan nor a finding", api, nil, inWeb, true},
		{"its only scan failed", append(api, scan("s-2", "web", v1alpha1.ScanFailed)), nil, inWeb, true},
		{"its scan found nothing", append(api, scan("s-2", "web", v1alpha1.ScanSucceeded)), nil, inWeb, false},
		{"its scans are deleted", api, []v1alpha1.Finding{ofWeb}, inWeb, false},
		{"no project was scanned", nil, nil, inWeb, false},
		{"it has no result", api, nil, []sarif.Result{inFile("api/a.go", "x()", 5)}, false},
		{"its only result is suppressed", api, nil, []sarif.Result{suppressed}, false},
		{"its folder was scanned as another project", api, nil, []sarif.Result{inFile("both/a.go", "x()", 5)}, false},
	} {
		past, out := history{}, &Compared{Known: ResultSet{}}
		past.add(tc.scans)
		batch := suppressing(tc.results...)
		covered := coverage{batches: []*Batch{batch}, scanned: map[string]bool{"api": true, "web": true}}
		base := Base{Holding: func(file string) []string {
			folder, _, _ := strings.Cut(file, "/")
			return map[string][]string{"api": {"api"}, "web": {"web"}, "both": {"api", "web"}}[folder]
		}}
		comparison := toolComparison{base: base, repository: &v1alpha1.Repository{}, coverage: covered, past: past, findings: tc.findings, out: out}
		harness.Must(t, comparison.compare(t.Context()))
		want := map[bool]string{true: "The base has no successful scan with lint of these projects: web. Their results count as new."}[tc.warned]
		if warned := strings.Join(out.Warnings, "\n"); !strings.HasPrefix(warned, want) || want == "" && strings.Contains(warned, "projects") {
			t.Errorf("%s: warnings %q, want %q", tc.reason, warned, want)
		}
	}
}

// The author of a pull request would read that it fixed what the base has broken since.
func TestOnlyFindingsThatWereOpenWhenThePullRequestBeganAreFixed(t *testing.T) {
	began := time.Now()
	change := func(kind v1alpha1.TransitionType, after time.Duration) v1alpha1.Transition {
		return v1alpha1.Transition{Type: kind, At: v1alpha1.NewTime(began.Add(after))}
	}
	const closed, reopened, day = v1alpha1.TransitionClosed, v1alpha1.TransitionReopened, 24 * time.Hour
	for _, tc := range []struct {
		reason  string
		changes []v1alpha1.Transition
		fixed   int
	}{
		{"open all the time", nil, 1},
		{"decided about since", []v1alpha1.Transition{change(v1alpha1.TransitionTriaged, day)}, 1},
		{"reopened before", []v1alpha1.Transition{change(closed, -2*day), change(reopened, -day)}, 1},
		{"reopened since", []v1alpha1.Transition{change(closed, -day), change(reopened, day)}, 0},
		{"closed and reopened since", []v1alpha1.Transition{change(closed, day), change(reopened, 2*day)}, 1},
	} {
		l := newLife(t)
		l.scans(found(5, "x", false))
		findings := l.there()
		findings[0].Spec.DetectedAt = new(v1alpha1.NewTime(began.Add(-3 * day)))
		findings[0].Status.Transitions = tc.changes
		out, batch := &Compared{Known: ResultSet{}}, suppressing()
		comparison := toolComparison{base: Base{Since: began}, repository: &v1alpha1.Repository{}, coverage: coverage{batches: []*Batch{batch}},
			past: l.memory.scans[batch.Tool], findings: findings, out: out}
		harness.Must(t, comparison.compare(t.Context()))
		harness.Same(t, tc.reason+": fixed", tc.fixed, out.Fixed)
	}
}

// A comment that hides a problem of the base can be removed without an issue, so people must hear of it.
func TestARemovedSuppressionIsWarnedOf(t *testing.T) {
	external := func(line int32, code string) sarif.Result {
		r := found(line, code, true)
		r.Suppression.InSource = false
		return r
	}
	const one = "commit: 1."
	for _, tc := range []struct {
		reason       string
		base, commit []sarif.Result
		warned       string
	}{
		{"still suppressed", []sarif.Result{found(5, "x", true)}, []sarif.Result{found(5, "x", true)}, ""},
		{"removed", []sarif.Result{found(5, "x", true)}, []sarif.Result{found(5, "x", false)}, one},
		{"one of two removed, the lines are swapped", []sarif.Result{found(5, "x", true), found(9, "x", false)},
			[]sarif.Result{found(5, "x", false), found(9, "x", true)}, ""},
		{"both open, one was suppressed", []sarif.Result{found(5, "x", true), found(9, "x", false)},
			[]sarif.Result{found(5, "x", false), found(9, "x", false)}, one},
		{"removed, and another excepted outside the source", []sarif.Result{found(5, "x", true), found(90, "y", false)},
			[]sarif.Result{found(5, "x", false), external(90, "y")}, one},
		{"removed, and another suppressed", []sarif.Result{found(5, "x", true), found(90, "y", false)},
			[]sarif.Result{found(5, "x", false), found(90, "y", true)}, one},
		{"fixed", []sarif.Result{found(5, "x", true)}, nil, ""},
		{"excepted outside the source, as a baseline is", []sarif.Result{external(5, "x")}, []sarif.Result{found(5, "x", false)}, ""},
	} {
		l := newLife(t)
		opened := slices.Clone(tc.base)
		for i := range opened {
			opened[i].Suppression = nil // only a finding that was open before is kept suppressed
		}
		for _, results := range [][]sarif.Result{opened, tc.base} {
			l.scan(suppressing(results...), func(int, string) {})
		}
		out, batch := &Compared{Known: ResultSet{}}, suppressing(tc.commit...)
		comparison := toolComparison{repository: &v1alpha1.Repository{}, coverage: coverage{batches: []*Batch{batch}},
			past: l.memory.scans[batch.Tool], findings: l.there(), out: out}
		harness.Must(t, comparison.compare(t.Context()))
		warned := strings.Join(out.Warnings, "\n")
		if (tc.warned == "") != (warned == "") || !strings.Contains(warned, tc.warned) || warned != "" && !strings.HasSuffix(warned, "in a.go") {
			t.Errorf("%s: the warning is %q, want %q in it and the place at its end", tc.reason, warned, tc.warned)
		}
		harness.Same(t, tc.reason+": counted", len(out.Warnings), out.Unsuppressed)
	}
}

// A new service has the lock file of another one, which its own analysis reports.
func TestAFindingOfAnotherAnalysisIsNotKnownToHaveMoved(t *testing.T) {
	in := func(path string) []sarif.Result {
		out := []sarif.Result{inFile(path, "", 1), inFile(path, "", 1)}
		for i := range out {
			id := strconv.Itoa(i)
			out[i].Package, out[i].Vulnerability = &sarif.Package{Name: id, Version: "1"}, &sarif.Vulnerability{ID: "CVE-2026-" + id}
			out[i].Index = i
		}
		return out
	}
	l := newLife(t)
	l.scan(&Batch{Tool: "lint", Category: v1alpha1.CategoryPackage, Analysis: "a", Results: in("a/lock")}, func(int, string) {})
	base := Base{Since: time.Now().AddDate(1, 0, 0)}
	compared := func(b *Batch, findings ...v1alpha1.Finding) *Compared {
		b.Tool = "lint"
		out := &Compared{Known: ResultSet{}}
		comparison := toolComparison{base: base, repository: &v1alpha1.Repository{}, coverage: base.coverageOf([]*Batch{b}),
			past: l.memory.scans["lint"], findings: findings, out: out}
		harness.Must(t, comparison.compare(t.Context()))
		return out
	}
	known := func(b *Batch, findings ...v1alpha1.Finding) int { return len(compared(b, findings...).Known) }
	for _, tc := range []struct {
		reason, analysis, chosen, path string
		category                       v1alpha1.FindingCategory
		known, warnings                int
	}{
		{"another analysis, another file", "b", "", "b/lock", v1alpha1.CategoryPackage, 0, 1},
		{"another analysis, the same file", "b", "", "a/lock", v1alpha1.CategoryPackage, 2, 1},
		{"the same analysis, another file", "a", "", "b/lock", v1alpha1.CategoryPackage, 2, 0},
		{"the same analysis, another category", "a", "", "b/lock", v1alpha1.CategoryCode, 2, 1},
		{"another analysis, imported as the same", "b", "a", "b/lock", v1alpha1.CategoryPackage, 2, 0},
		{"the same analysis, imported as another", "a", "b", "b/lock", v1alpha1.CategoryPackage, 0, 1},
		{"no analysis, another category", "", "", "b/lock", v1alpha1.CategoryCode, 2, 1},
	} {
		batch := &Batch{Category: tc.category, Analysis: tc.chosen, OfFiles: []string{tc.analysis}, Results: in(tc.path)}
		out := compared(batch, l.there()...)
		harness.Same(t, tc.reason+": known", tc.known, len(out.Known))
		harness.Same(t, tc.reason+": warnings", tc.warnings, len(out.Warnings))
	}

	replaced := in("b/lock")
	for i := range replaced {
		replaced[i].Package.Name += "-api"
	}
	another := &Batch{Category: v1alpha1.CategoryPackage, OfFiles: []string{"a"}, Results: replaced}
	harness.Same(t, "other packages in another file: known", 0, known(another, l.there()...))

	for analysis, fixed := range map[string]int{"a": 2, "b": 0} {
		clean := compared(&Batch{Category: v1alpha1.CategoryPackage, OfFiles: []string{analysis}}, l.there()...)
		harness.Same(t, "a clean review of the analysis "+analysis+": fixed of a", fixed, clean.Fixed)
	}

	// The scanned projects do not include that of the findings, but a result belongs to none.
	l.memory.scans["lint"]["s-api"] = pastScan{series: series{v1alpha1.CategoryPackage, "a"}, project: "api", succeeded: true}
	base.Scanned = func([]*Batch) (map[string]bool, bool) { return map[string]bool{"api": true}, true }
	base.Holding = func(file string) []string {
		if strings.HasPrefix(file, "api/") {
			return []string{"api"}
		}
		return nil
	}
	for path, want := range map[string]struct{ known, warnings int }{"b/lock": {0, 1}, "a/lock": {2, 0}, "api/lock": {0, 0}} {
		out := compared(&Batch{Category: v1alpha1.CategoryPackage, OfFiles: []string{"a"}, Results: in(path)}, l.there()...)
		harness.Same(t, path+" of another project: known", want.known, len(out.Known))
		harness.Same(t, path+" of another project: fixed", 0, out.Fixed)
		harness.Same(t, path+" of another project: warnings", want.warnings, len(out.Warnings))
	}
	renamed, ofTwo := append(in("b/lock"), in("c/lock")...), append(l.there(), l.there()[0])
	for i := range renamed {
		renamed[i].Index = i
	}
	ofTwo[2].Spec.ProjectRef.Name = "shop"
	warnings := compared(&Batch{Category: v1alpha1.CategoryPackage, OfFiles: []string{"a"}, Results: renamed}, ofTwo...).Warnings
	if len(warnings) != 2 || !strings.Contains(warnings[0], "(1) are like open findings of the project shop,") ||
		!strings.Contains(warnings[1], "(2) are like open findings of the project web,") {
		t.Errorf("four results are like findings of two projects: %q", warnings)
	}
	// Nothing tells which project was scanned.
	base.Scanned = func([]*Batch) (map[string]bool, bool) { return nil, true }
	out := compared(&Batch{Category: v1alpha1.CategoryPackage, OfFiles: []string{"a"}, Results: in("b/lock")[:1]}, l.there()...)
	harness.Same(t, "of an unknown project: known, fixed, warnings", []int{1, 0, 1},
		[]int{len(out.Known), out.Fixed, len(out.Warnings)})
	started := base.Since
	base.Since = time.Time{}
	out = compared(&Batch{Category: v1alpha1.CategoryPackage, OfFiles: []string{"a"}}, l.there()...)
	harness.Same(t, "of an unknown project, found in the base since: warnings", 0, len(out.Warnings))
	base.Since, base.Scanned = started, nil

	// The file of b is renamed while that of a is alike.
	l.scan(&Batch{Tool: "lint", Category: v1alpha1.CategoryPackage, Analysis: "b", Results: in("b/lock")}, func(int, string) {})
	batch := &Batch{Category: v1alpha1.CategoryPackage, OfFiles: []string{"b"}, Results: in("c/lock")}
	harness.Same(t, "b's file is renamed: known", 2, known(batch, l.there()...))
	chosen := &Batch{Category: v1alpha1.CategoryPackage, Analysis: "a", OfFiles: []string{"b"}, Results: in("a/lock")}
	harness.Same(t, "b's are not reviewed: fixed", 0, compared(chosen, l.there()...).Fixed)
	findings := l.there()
	for i := range findings {
		if findings[i].Spec.Analysis == "b" {
			findings[i].Spec.Closed = &v1alpha1.FindingClosure{ScanID: "s-3"}
		}
	}
	harness.Same(t, "b's file is renamed, its findings closed since: known", 2, known(batch, findings...))
	batch.Results = append(batch.Results, inFile("a/lock", "", 1), inFile("b/lock", "", 1))
	batch.Results[2].Index, batch.Results[3].Index = 2, 3
	batch.Results[2].RuleID, batch.Results[3].RuleID = "other", "other"
	harness.Same(t, "b's packages move, all files have other results: known", 2, known(batch, l.there()...))
	harness.Same(t, "b's packages move, closed since, and all files have other results: known", 2, known(batch, findings...))
}

// With many results each look for issues takes long.
func TestIssuesAreLookedForAgainOnlyWithoutMoreResults(t *testing.T) {
	doubtful := match{before: &v1alpha1.Finding{}, doubt: recognition.DoubtLine}
	same := doubtful
	same.is.Snippet, same.was.Snippet = "x", "x"
	for _, tc := range []struct {
		reason string
		match  match
		want   int
	}{
		{"the results have other code", doubtful, 1},
		{"one has the code of its finding", same, 2},
		{"none is in doubt", match{before: &v1alpha1.Finding{}}, 0},
	} {
		looked := 0
		ownOf([]reported{{}}, []match{tc.match}, func(ResultSet) Distances {
			looked++
			return Distances{}
		})
		harness.Same(t, tc.reason, tc.want, looked)
	}
}
