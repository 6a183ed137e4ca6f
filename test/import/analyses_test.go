package import_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// inAnalysis returns the document with that automationDetails.id in its run.
func inAnalysis(id, document string) string {
	return strings.Replace(document, `"results"`, `"automationDetails":{"id":"`+id+`"},"results"`, 1)
}

// muteAll mutes every finding of the project.
func (p *project) muteAll() {
	p.Helper()
	for name := range p.findings() {
		p.triage(name, `{"spec":{"triage":{"userStatus":"muted"}}}`)
	}
}

// withoutEvidence removes the evidence of every finding of the project.
func (p *project) withoutEvidence() {
	p.Helper()
	for name := range p.findings() {
		p.triage(name, `{"spec":{"evidence":null}}`)
	}
}

// count counts the project's findings: the open and the closed ones, and those of both that are muted.
func (p *project) count() (open, closed, muted int) {
	p.Helper()
	for _, f := range p.findings() {
		if f.Spec.Closed == nil {
			open++
		} else {
			closed++
		}
		if f.Spec.Triage.UserStatus == v1alpha1.UserStatusMuted {
			muted++
		}
	}
	return open, closed, muted
}

// wantState fails the test unless that many findings of the project are open, closed and muted.
func (p *project) wantState(reason string, open, closed, muted int) {
	p.Helper()
	if o, c, m := p.count(); o != open || c != closed || m != muted {
		p.Errorf("%s: %d open, %d closed, %d muted; want %d, %d, %d", reason, o, c, m, open, closed, muted)
	}
}

func TestAnalysesOfOneToolLeaveEachOtherAlone(t *testing.T) {
	p := newProject(t)
	results := numbered(6)
	ruby := inAnalysis("/language:ruby/", builder.SARIF("CodeQL", results[:3]...))
	python := inAnalysis("/language:python/1", builder.SARIF("CodeQL", results[3:]...))
	p.imports(ruby, commitA)
	p.muteAll()
	if s := p.imports(python, commitA); s.Created != 3 || s.Closed != 0 || s.Analysis != "/language:python" {
		t.Errorf("Python after Ruby: %+v, want 3 created and none closed", *s)
	}
	p.wantState("both", 6, 0, 3)
	p.did("Ruby again", p.imports(ruby, commitB), counts{Unchanged: 3})
	fewer := inAnalysis("/language:python/2", builder.SARIF("CodeQL", results[4:]...))
	p.did("another run of Python, without its third", p.imports(fewer, commitB), counts{Unchanged: 2, Closed: 1})
	p.wantState("in the end", 5, 1, 3)
	analyses := map[string]int{}
	for _, scan := range p.scans() {
		analyses[scan.Spec.Analysis]++
	}
	if analyses["/language:ruby"] != 2 || analyses["/language:python"] != 2 {
		t.Errorf("scans by analysis: %v", analyses)
	}
}

// Findings without an analysis are adopted by the analysis that reports them. Only a scan without one closes the others,
// and ends the adoption by the analyses that were imported before.
func TestAnAnalysisAdoptsFindingsWithoutOne(t *testing.T) {
	p := newProject(t)
	results := numbered(6)
	now := time.Now()
	imports := func(minute time.Duration, document string) *importer.Summary {
		at := importer.Choices{Commit: commitA, StartedAt: now.Add((minute - 60) * time.Minute)}
		return p.importsAll(importer.Options{Force: true}, collect(t, at, document))[0]
	}
	imports(0, document(results...))
	p.muteAll()
	p.withoutEvidence() // as an earlier version stored them
	before := p.versions()
	ruby, python := inAnalysis("ruby/", document(results[:2]...)), inAnalysis("python/", document(results[2:4]...))
	p.did("the first import of Ruby", imports(1, ruby), counts{Updated: 2, Adopted: 2, NotAdopted: 4})
	p.did("the first import of Python", imports(1, python), counts{Updated: 2, Adopted: 2, NotAdopted: 2})
	p.did("the second import of Ruby", imports(2, ruby), counts{Unchanged: 2, NotAdopted: 2})
	p.did("a scan without an analysis and without results", imports(3, document()), counts{Closed: 2})
	p.wantState("in the end", 4, 2, 6)
	for name := range p.findings() {
		if before[name] == "" {
			t.Errorf("%s is a new finding", name)
		}
	}
	more := inAnalysis("ruby/", document(results[0], results[1], results[4]))
	p.did("Ruby with one that is closed", imports(4, more), counts{Created: 1, Unchanged: 2})
	p.did("the first import of Java, with the other", imports(5, inAnalysis("java/", document(results[5]))), counts{Reopened: 1, Adopted: 1})
}

// Of several analyses in one import, each takes over what none before it does, and a dry run counts the same.
func TestAFindingIsAdoptedByOneAnalysisOfAnImport(t *testing.T) {
	p := newProject(t)
	p.imports(builder.SARIF("old", numbered(7)...), commitA)
	p.muteAll()
	results := numbered(7)
	batches := func() []*importer.Batch {
		return collect(t, importer.Choices{Formerly: "old"}, inAnalysis("ruby/", builder.SARIF("new", results[:2]...)),
			inAnalysis("python/", builder.SARIF("new", results[:3]...)), inAnalysis("java/", builder.SARIF("new", results[3:6]...)))
	}
	for _, dry := range []bool{true, false} {
		s := p.importsAll(importer.Options{DryRun: dry}, batches())
		p.did("Java", s[0], counts{Updated: 3, Adopted: 3, NotAdopted: 1})
		p.did("Python", s[1], counts{Updated: 3, Adopted: 3, NotAdopted: 1})
		p.did("Ruby", s[2], counts{Created: 2, NotAdopted: 1})
		for i, want := range []int{3, 3, 1} { // the last also renames what none reports
			harness.Same(t, fmt.Sprintf("dry run %t, scan %d: renamed", dry, i), want, s[i].Renamed["old"])
		}
	}
	p.wantState("in the end", 9, 0, 7)
}

// A job that still runs without an analysis keeps its findings.
func TestAJobOfNoAnalysisKeepsItsFindings(t *testing.T) {
	p := newProject(t)
	results := numbered(4)
	plain, named := document(results[:2]...), inAnalysis("other/", document(results[2:]...))
	for name, change := range map[string]func(*project){
		"runs less often": func(*project) {},
		"its Scan is deleted, and its results had neither messages nor code": func(p *project) {
			harness.Must(p, env.Client.Delete(p.Context(), &p.scans()[0]))
			p.withoutEvidence()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.imports(plain, commitA)
			change(p)
			p.did("another job", p.imports(named, commitA), counts{Created: 2, NotAdopted: 2})
			p.did("another job again", p.imports(named, commitA), counts{Unchanged: 2, NotAdopted: 2})
		})
	}
	earlier := collect(t, importer.Choices{StartedAt: time.Now().Add(-time.Hour)}, named)
	p.importsAll(importer.Options{}, earlier)
	p.imports(plain, commitA)
	for _, want := range []counts{{Updated: 2}, {Unchanged: 2}} { // the commit is new, and then known
		p.did("the analysis, which leaves what is of none", p.imports(named, commitB), want)
	}
	p.wantState("both", 4, 0, 0)
}

func TestAnAnalysisThatChangesWithEachRunIsRefused(t *testing.T) {
	p := newProject(t)
	day := func(id string) string { return inAnalysis(id, document(numbered(3)...)) }
	s := p.imports(day("nightly/2026-11-21/"), commitA)
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "--analysis (over REST analysis)") {
		t.Errorf("warnings %v, want one that names --analysis", s.Warnings)
	}
	before := p.versions()
	_, err := p.tryImport(importer.Options{}, collect(t, importer.Choices{}, day("nightly/2026-11-22/")))
	p.wantRefused(err, `"nightly/2026-11-22"`, `--analysis "nightly/2026-11-21" (over REST analysis)`)
	stable := "nightly/2026-11-21"
	s = p.importsAll(importer.Options{}, collect(t, importer.Choices{Analysis: &stable}, day("nightly/2026-11-23/")))[0]
	if s.Unchanged != 3 || len(s.Warnings) != 0 || fmt.Sprint(before) != fmt.Sprint(p.versions()) {
		t.Errorf("with --analysis: %+v, want 3 unchanged and nothing written", *s)
	}
}

// --analysis replaces the analysis of all runs: if the files have several, it is no way to name one of them.
func TestAChosenAnalysisIsNotAdvisedForOneOfSeveral(t *testing.T) {
	p := newProject(t)
	results := numbered(5)
	files := func(id string) []string {
		return []string{inAnalysis(id, document(results[:2]...)), inAnalysis("shop/", document(results[2:]...))}
	}
	s := p.importsAll(importer.Options{}, collect(t, importer.Choices{}, files("cart-2026-11-28/")...))
	for i, want := range []string{"correct automationDetails.id", ""} {
		if got := strings.Join(s[i].Warnings, ""); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("the first import of %s warns %q, want %q", s[i].Analysis, got, want)
		}
	}
	p.muteAll()
	const merges = "(--analysis would put all runs of the files into one analysis)"
	for _, id := range []string{"cart-2026-11-29/", "basket/"} {
		_, err := p.tryImport(importer.Options{}, collect(t, importer.Choices{}, files(id)...))
		p.wantRefused(err, `so that it names the analysis "cart-2026-11-28" in every import `+merges,
			"if it is a separate analysis, import it once with --force (over REST force=true)")
	}
	dry := importer.Options{DryRun: true, Force: true}
	s = p.importsAll(dry, collect(t, importer.Choices{}, files("basket/")...))
	harness.Contains(t, "with force: the warnings", strings.Join(s[0].Warnings, ""), merges)
	for _, chosen := range []string{"cart-2026-11-28", "basket"} {
		s = p.importsAll(dry, collect(t, importer.Choices{Analysis: &chosen}, files("basket/")...))
		want := fmt.Sprintf(`3 of 5 results are new in the analysis %q and are open findings in the analysis "shop"`, chosen)
		harness.Contains(t, "with --analysis "+chosen+": the warnings", strings.Join(s[0].Warnings, ""), want)
	}
}

// Known findings under a new analysis name would lose all decisions.
func TestARenamedAnalysisIsRefusedWhereSomebodyHasDecided(t *testing.T) {
	p := newProject(t)
	p.imports(inAnalysis("shop/", document(numbered(3)...)), commitA)
	p.muteAll()
	renamed := inAnalysis("store/", document(numbered(3)...))
	for _, other := range []string{renamed, document(numbered(3)...)} {
		_, err := p.tryImport(importer.Options{}, collect(t, importer.Choices{}, other))
		p.wantRefused(err, "3 of 3 results", `--analysis "shop" (over REST analysis)`, "--force (over REST force=true)")
	}
	p.wantState("refused", 3, 0, 3)
	misspelt := "shpo"
	for _, force := range []bool{false, true} {
		tried := p.importsAll(importer.Options{DryRun: true, Force: force}, collect(t, importer.Choices{Analysis: &misspelt}, renamed))[0]
		if len(tried.Warnings) != 1 || !strings.Contains(tried.Warnings[0], `--analysis "shop"`) {
			t.Errorf("with a misspelt --analysis, force %t: warnings %q, want one that names the known one", force, tried.Warnings)
		}
	}
	forced := p.importsAll(importer.Options{Force: true}, collect(t, importer.Choices{}, renamed))
	p.did("with force", forced[0], counts{Created: 3})
	harness.Contains(t, "with force: the warnings", fmt.Sprint(forced[0].Warnings), `--analysis "shop"`)
	p.did("once it is known", p.imports(renamed, ""), counts{Unchanged: 3})
}

// A finding that another import adopts just before this import writes it stays with the other one.
func TestAFindingThatIsTakenOverMeanwhileIsLeftAlone(t *testing.T) {
	p := newProject(t)
	p.imports(document(numbered(2)...), commitA)
	taken := p.titled("problem 000").Name
	adopt := during(func() { p.triage(taken, `{"spec":{"analysis":"python"}}`) })
	s := p.importsAll(adopt, collect(t, importer.Choices{}, inAnalysis("ruby/", document(numbered(2)...))))[0]
	if s.Updated != 1 || s.Skipped != 1 || p.findings()[taken].Spec.Analysis != "python" {
		t.Errorf("%+v, want 1 updated, and 1 skipped that is Python's", *s)
	}
}
