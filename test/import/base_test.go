package import_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/reviewimport"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// ofBase is a problem that the base also has.
var ofBase = builder.Result{Rule: "known", Path: "d.go", Message: "known", Line: 4, Snippet: "known()"}

func TestAReviewOfTheBaseItselfHasNoIssue(t *testing.T) {
	p := newPull(t)
	suppressed := builder.Result{Rule: "known", Path: "e.go", Message: "known too", Line: 9, Suppressed: "by design"}
	all := append(numbered(20), ofBase)
	p.base().imports(document(append(all, suppressed)...), commitA)
	s := p.reviews(commitA, document(append(all, suppressed)...))
	if s.Open != 0 || s.Created != 0 || s.Base.Known != 21 || s.Base.Fixed != 0 || len(s.Base.Unscanned) > 0 || len(p.issues()) != 0 {
		t.Errorf("%+v, base %+v; want 21 known and no issue", *s, *s.Base)
	}
}

func TestOnlyWhatTheBaseDoesNotHaveIsAnIssue(t *testing.T) {
	p := newPull(t)
	p.base().imports(document(ofBase, goes), commitA)
	moved := ofBase
	moved.Line, moved.Message = 44, "known by other words"
	s := p.reviews(commitB, document(moved, comes))
	if s.Open != 1 || s.Created != 1 || s.Base.Known != 1 || s.Base.Fixed != 1 {
		t.Errorf("%+v, base %+v; want 1 known, 1 fixed and 1 issue", *s, *s.Base)
	}
	if got := s.Base.FixedExamples; len(got) != 1 || got[0].Title != "goes" {
		t.Errorf("fixed are %+v, want \"goes\"", got)
	}
	harness.Same(t, "states", map[string]string{"comes": "open"}, p.states())
	// If the same problem occurs twice, one occurrence is the base's and the other is new.
	twice := ofBase
	twice.Line = 90
	if s := p.reviews(commitC, document(ofBase, twice, goes)); s.Open != 1 || s.Created != 1 || s.Resolved != 1 || s.Base.Fixed != 0 {
		t.Errorf("%+v, base %+v; want the second of two as the one issue", *s, *s.Base)
	}
}

// A problem that is fixed in the base while the pull request is open existed when it began.
func TestWhatTheBaseClosedAfterThePullRequestBeganIsNoIssueOfIt(t *testing.T) {
	p := newPull(t)
	p.base().imports(document(stays, ofBase), commitA)
	p.base().imports(document(stays), commitB)
	for _, c := range []struct {
		reason string
		opened time.Time
		open   int
	}{
		{"it began before the base was repaired", time.Now().Add(-time.Hour), 0},
		{"it began later, and brings the problem back", time.Now(), 1},
	} {
		p.OpenedAt = c.opened
		s := p.imports(reviewimport.Options{DryRun: true}, commitC, document(stays, ofBase))
		if s.Open != c.open || s.Base.Known != 2-c.open {
			t.Errorf("%s: %d open, base %+v; want %d open", c.reason, s.Open, *s.Base, c.open)
		}
	}
	// Found in the base after the pull request began, so the pull request cannot have fixed it.
	p.OpenedAt = time.Now().Add(-time.Hour)
	s := p.imports(reviewimport.Options{DryRun: true}, commitC, document())
	if s.Base.Fixed != 0 {
		t.Errorf("base %+v, want none fixed: all was found after the pull request began", *s.Base)
	}
}

// A new service has the problems of another one, whose analysis the files do not contain.
func TestAFindingOfAnotherAnalysisIsNotTheNewServices(t *testing.T) {
	p := newPull(t)
	p.base().imports(inAnalysis("svc-a/", document(stays)), commitA)
	copied := stays
	copied.Path = "b.go"
	asImported := []string{"--analysis", "svc-a", "--commit", commitB, "--fail-on", "new", "--dry-run"}
	harness.Run(t, p.kubectl(append(asImported, sarifFile(p, inAnalysis("run/7/", document(copied))))...)).Wants("results known: 1") // it has moved
	if s := p.reviews(commitB, document(copied)); s.Open != 0 || s.Base.Known != 1 {
		t.Errorf("without an analysis: %d open, base %+v; want it to have moved", s.Open, *s.Base)
	}
	if s := p.reviews(commitC, inAnalysis("svc-b/", document(copied))); s.Open != 1 || s.Base.Known != 0 {
		t.Errorf("%d open, base %+v; want the copy as an issue", s.Open, *s.Base)
	}
}

// The base has a problem once per analysis, and the review once.
func TestAProblemOfTwoAnalysesIsNotFixed(t *testing.T) {
	p := newPull(t)
	again := stays
	again.Line = 90
	all := document(stays, again, goes)
	p.base().importsAll(importer.Options{Force: true}, collect(t, importer.Choices{}, inAnalysis("linux/", all), inAnalysis("windows/", all)))
	if s := p.reviews(commitA, inAnalysis("linux/", all), inAnalysis("windows/", all)); s.Open != 0 || s.Base.Fixed != 0 {
		t.Errorf("%d open, base %+v; want nothing fixed", s.Open, *s.Base)
	}
	less := document(stays, goes)
	if s := p.reviews(commitB, inAnalysis("linux/", less), inAnalysis("windows/", less)); s.Base.Fixed != 2 {
		t.Errorf("base %+v, want one of two alike fixed, in both analyses", *s.Base)
	}
}

func TestAReviewNeedsItsRepositoryAndItsProject(t *testing.T) {
	p := newPull(t)
	for missing, tc := range map[string]struct {
		pr   *string
		says string
	}{
		"repository": {&p.Repository, "kubectl get repository"},
		"project":    {&p.Project, "or review without --project (over REST: POST /repos/OWNER/NAME/code-scanning/sarifs)"},
	} {
		there := *tc.pr
		*tc.pr = "nowhere"
		_, err := p.try(reviewimport.Options{}, commitA, document(stays))
		p.base().wantRefused(err, "no "+missing+` "nowhere"`, tc.says)
		*tc.pr = there
	}
	harness.Same(t, "issues written", 0, len(p.issues()))
}

// A job of a monorepo scans one project: the findings of the others are neither known nor fixed.
func TestAProjectThatWasNotScannedIsNotTheBase(t *testing.T) {
	p := newPull(t)
	p.Repository = p.Project
	env.Create(p, builder.Repository(p.Repository).In(namespace).URL("https://github.com/acme/monorepo").Build())
	in := func(folder string, r builder.Result) builder.Result {
		r.Path = folder + "/" + r.Path
		return r
	}
	for _, folder := range []string{"api", "web"} {
		name := p.Repository + "-" + folder
		env.Create(p, builder.Project(name).In(namespace).Repository(p.Repository).
			Mutate(func(p *v1alpha1.Project) { p.Spec.RelativePath = folder }).Build())
		target := importer.Target{Namespace: namespace, Repository: p.Repository, Project: name}
		base := document(in(folder, goes), in(folder, builder.Result{Rule: folder, Path: "x.go", Message: folder, Line: 3, Snippet: folder + "()"}))
		_, err := importer.New(newClient(p, scanner), target, importer.Options{}).Import(t.Context(), collect(t, importer.Choices{}, base))
		harness.Must(p, err)
	}
	p.Project = ""
	copied := builder.Result{Rule: "api", Path: "new.go", Message: "api", Line: 9, Snippet: "api()"}
	s := p.reviews(commitB, document(in("web", goes), in("web", copied)))
	if s.Open != 1 || s.Created != 1 || s.Base.Known != 1 || s.Base.Fixed != 1 || s.Base.FixedExamples[0].Title != "web" {
		t.Errorf("%+v, base %+v; want 1 known and 1 fixed of web, and 1 issue", *s, *s.Base)
	}
	// The folder api is renamed, and a file of api is copied to web.
	copied.Path = "x.go"
	s = p.reviews(commitC, document(in("web", goes), in("web", copied), in("server", goes)))
	want := "Results of lint that count as new (1) are like open findings of the project " + p.Repository + "-api,"
	if !slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.HasPrefix(w, want) }) {
		t.Errorf("the warnings are %q, want %q", s.Warnings, want)
	}
}

func TestThePluginJudgesAPullRequest(t *testing.T) {
	p := newPull(t)
	p.base().imports(document(ofBase), commitA)
	same, low, high := sarifFile(p, document(ofBase)), sarifFile(p, document(ofBase, comes)), sarifFile(p, document(ofBase, stays))
	for _, c := range []struct {
		reason string
		file   string
		gate   string
		status int
		want   string
	}{
		{"nothing is new", same, "new", 0, "**Passed**: no open issue that the base does not have.\n"},
		{"what is new is low", low, "high", 0, "**Passed**: no open issue of high severity that the base does not have.\n"},
		{"any issue is new", low, "new", 3, "**Failed**: 1 open issue that the base does not have.\n"},
		{"what is new is high", high, "high", 3, "- **high** `stays` in `a.go:1` (new in this commit)\n"},
		{"high is above medium", high, "medium", 3, "| 1 | 1 | 0 | 0 |"},
		{"no such gate", high, "critical", 1, "use high, medium or new"},
	} {
		out := harness.Run(t, p.kubectl(c.file, "--commit", commitB, "--format", "markdown", "--fail-on", c.gate, "--dry-run")).Says(c.want)
		harness.Same(t, c.reason+": exit status", c.status, out.Code)
	}
}
