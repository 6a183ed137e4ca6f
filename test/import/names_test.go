package import_test

import (
	"net/http"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/builder"
)

// importsAs imports a document of a tool that formerly had another name.
func (p *project) importsAs(former, document string) *importer.Summary {
	p.Helper()
	return p.importsAll(importer.Options{}, collect(p, importer.Choices{Formerly: former}, document))[0]
}

// wantNoFactOf fails the test if a finding still has a fact with a tool's former name.
func (p *project) wantNoFactOf(former string) {
	p.Helper()
	for name, f := range p.findings() {
		if f.Spec.Tool == former || f.Spec.Agent.Name == former {
			p.Errorf("finding %s is of %s, agent %s", name, f.Spec.Tool, f.Spec.Agent.Name)
		}
		for _, m := range f.ManagedFields {
			if m.Manager == "scanner/"+former {
				p.Errorf("finding %s: %s owns fields", name, m.Manager)
			}
		}
	}
}

// Open, closed and reopened findings move to the new name with their decisions, including unreported ones, and no
// fact with the old name keeps a finding closed.
func TestARenamedToolKeepsItsFindings(t *testing.T) {
	p := newProject(t)
	results := numbered(4)
	p.imports(builder.SARIF("old", results...), commitA)
	p.muteAll()
	p.imports(builder.SARIF("old", results[:2]...), commitA) // 2 and 3 are closed
	before := p.versions()

	now := builder.SARIF("new", results[1], results[2])
	s := p.importsAs("old", now)
	if s.Updated != 1 || s.Reopened != 1 || s.Closed != 1 || s.Created != 0 || s.Renamed["old"] != 4 {
		t.Errorf("%+v, want 1 updated, 1 reopened, 1 closed, and all 4 taken over", *s)
	}
	p.wantState("taken over", 2, 2, 4)
	p.wantNoFactOf("old")
	for name := range p.findings() {
		if before[name] == "" {
			t.Errorf("%s is a new finding", name)
		}
	}
	if f := p.titled("problem 002"); f.Spec.Closed != nil {
		t.Errorf("the finding that is back is closed: %+v", f.Spec.Closed)
	}
	s = p.imports(builder.SARIF("new", results...), "")
	p.did("what the old name closed comes back under the new one", s, counts{Reopened: 2, Unchanged: 2})
	p.wantState("all back", 4, 0, 4)
	if s := p.importsAs("old", builder.SARIF("new", results...)); s.Unchanged != 4 || len(s.Warnings) != 1 {
		t.Errorf("once more: %+v, want 4 unchanged and a warning that nothing is left to take over", *s)
	}
}

// The import fails after it has applied a finding under the new name, before it takes over the facts that this left out.
func TestATakeoverThatFailsIsDoneByTheNextImport(t *testing.T) {
	p, results := newProject(t), numbered(2)
	p.imports(builder.SARIF("old", results...), commitA)
	p.imports(builder.SARIF("old", results[0]), commitA)
	now := builder.SARIF("new", results...)
	fails := p.takingOver(func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") })
	_, err := importer.New(fails, p.target(), importer.Options{}).
		Import(t.Context(), collect(t, importer.Choices{Formerly: "old"}, now))
	if f := p.titled("problem 001"); err == nil || f.Spec.Tool != "new" || f.Spec.Closed == nil {
		t.Fatalf("error %v, tool %s, closed %+v; want it between the two", err, f.Spec.Tool, f.Spec.Closed)
	}
	p.importsAs("old", now)
	p.wantState("taken over", 2, 0, 0)
}

// Names that a tool is known to have had do not require a flag.
func TestAKnownOtherNameOfAToolIsTheSameTool(t *testing.T) {
	p := newProject(t)
	p.imports(builder.SARIF("semgrep", numbered(4)...), commitA)
	p.muteAll()
	if s := p.imports(builder.SARIF("Semgrep OSS", numbered(4)...), commitB); s.Updated != 4 || s.Created+s.Closed != 0 || s.Renamed["semgrep"] != 4 {
		t.Errorf("%+v, want 4 taken over", *s)
	}
	p.wantState("taken over", 4, 0, 4)
	p.wantNoFactOf("semgrep")
	both := collect(t, importer.Choices{Commit: commitB}, builder.SARIF("semgrep", numbered(2)...), builder.SARIF("Semgrep OSS", numbered(4)[2:]...))
	if len(both) != 1 || both[0].Tool != "Semgrep OSS" {
		t.Fatalf("%d scans of %s, want one of the newest name", len(both), both[0].Tool)
	}
	p.did("files of both names", p.importsAll(importer.Options{}, both)[0], counts{Unchanged: 4})
}

// If an earlier version created a second set under the new name, the set with decisions is kept.
func TestOfTwoSetsTheDecidedOneStays(t *testing.T) {
	p := newProject(t)
	p.imports(builder.SARIF("lint-old", numbered(3)...), commitA)
	p.muteAll()
	p.imports(builder.SARIF("lint-new", numbered(3)...), commitA)
	s := p.importsAs("lint-old", builder.SARIF("lint-new", numbered(3)...))
	p.did("the decided ones are taken over, the others closed", s, counts{Updated: 3, Closed: 3})
	p.wantState("one set", 3, 3, 3)
	for _, f := range p.findings() {
		if (f.Spec.Closed == nil) != (f.Spec.Triage.UserStatus == v1alpha1.UserStatusMuted) {
			t.Errorf("%s is %s, closed %v", f.Name, f.Spec.Triage.UserStatus, f.Spec.Closed)
		}
	}
}

// A finding that is decided about meanwhile stays open, and still gets the current name.
func TestTwoJobsOfARenamedToolCloseWhatIsGone(t *testing.T) {
	p := newProject(t)
	results := numbered(6)
	job := func(tool, analysis string, results ...builder.Result) string {
		return inAnalysis(analysis, builder.SARIF(tool, results...))
	}
	p.imports(job("old", "first/", results[:2]...), commitA)
	p.imports(job("old", "second/", results[2:]...), commitA)
	decided := p.titled("problem 005").Name
	both := collect(t, importer.Choices{Formerly: "old"}, job("new", "first/", results[1]), job("new", "second/", results[3:5]...))
	decide := during(func() { p.triage(decided, `{"spec":{"triage":{"userStatus":"active"}}}`) })
	summaries := p.importsAll(decide, both)
	p.did("the first job", summaries[0], counts{Updated: 1, Closed: 1})
	p.did("the second job", summaries[1], counts{Updated: 2, Closed: 1, LeftOpen: 1})
	p.wantState("both jobs", 4, 2, 0)
	p.wantNoFactOf("old")
}

// A decision that is made while findings are taken over is kept.
func TestADecisionDuringATakeoverStays(t *testing.T) {
	p := newProject(t)
	p.imports(builder.SARIF("old", numbered(2)...), commitA)
	name := p.titled("problem 000").Name
	mute := during(func() { p.triage(name, `{"spec":{"triage":{"userStatus":"muted"}}}`) })
	batches := collect(t, importer.Choices{Formerly: "old"}, builder.SARIF("new", numbered(2)...))
	p.did("the takeover", p.importsAll(mute, batches)[0], counts{Updated: 2})
	p.wantState("decided", 2, 0, 1)
	p.wantNoFactOf("old")
}

// A decision that is made between an import's read and its write also records the doubt that it concerns
// another problem.
func TestADecisionDuringAnImportCarriesItsDoubt(t *testing.T) {
	p := newProject(t)
	one := builder.Result{Rule: "R", Path: "a.go", Message: "m", Line: 5}
	p.imports(document(one), commitA)
	name := p.titled("m").Name
	one.Line = 90
	mute := during(func() { p.triage(name, `{"spec":{"triage":{"userStatus":"muted"}}}`) })
	p.importsAll(mute, collect(t, importer.Choices{}, document(one)))
	if f := p.findings()[name]; f.Spec.Doubt == nil || f.Spec.Triage.UserStatus != v1alpha1.UserStatusMuted {
		t.Errorf("doubt %v, triage %s; want the decision marked", f.Spec.Doubt, f.Spec.Triage.UserStatus)
	}
}
