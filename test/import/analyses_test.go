package import_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
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

// wantState fails the test unless that many findings of the project are open, closed and muted.
func (p *project) wantState(reason string, open, closed, muted int) {
	p.Helper()
	gotOpen, gotClosed, gotMuted := 0, 0, 0
	for _, f := range p.findings() {
		if f.Spec.Closed == nil {
			gotOpen++
		} else {
			gotClosed++
		}
		if f.Spec.Triage.UserStatus == v1alpha1.UserStatusMuted {
			gotMuted++
		}
	}
	if gotOpen != open || gotClosed != closed || gotMuted != muted {
		p.Errorf("%s: %d open, %d closed, %d muted; want %d, %d, %d", reason, gotOpen, gotClosed, gotMuted, open, closed, muted)
	}
}

func TestAnalysesOfOneToolLeaveEachOtherAlone(t *testing.T) {
	p := newProject(t)
	results := numbered(6)
	ruby := inAnalysis("/language:ruby/", documentOf("CodeQL", results[:3]...))
	python := inAnalysis("/language:python/1", documentOf("CodeQL", results[3:]...))
	p.imports(ruby, commitA)
	p.muteAll()
	if s := p.imports(python, commitA); s.Created != 3 || s.Closed != 0 || s.Analysis != "/language:python" {
		t.Errorf("Python after Ruby: %+v, want 3 created and none closed", *s)
	}
	p.wantState("both", 6, 0, 3)
	if s := p.imports(ruby, commitB); s.Unchanged != 3 || s.Closed != 0 {
		t.Errorf("Ruby again: %+v, want 3 unchanged", *s)
	}
	fewer := inAnalysis("/language:python/2", documentOf("CodeQL", results[4:]...))
	if s := p.imports(fewer, commitB); s.Unchanged != 2 || s.Closed != 1 {
		t.Errorf("another run of Python: %+v, want 2 unchanged and its third closed", *s)
	}
	p.wantState("in the end", 5, 1, 3)
	analyses := map[string]int{}
	for _, scan := range p.scans() {
		analyses[scan.Spec.Analysis]++
	}
	if analyses["/language:ruby"] != 2 || analyses["/language:python"] != 2 {
		t.Errorf("scans by analysis: %v", analyses)
	}
}

func TestTwoRunsOfOneAnalysisAreOneScan(t *testing.T) {
	p := newProject(t)
	results := numbered(4)
	batches := collect(t, importer.Choices{}, inAnalysis("a/1", document(results[:2]...)), inAnalysis("a/2", document(results[2:3]...)), inAnalysis("b/1", document(results[3:]...)))
	summaries, err := p.tryImport(importer.Options{}, batches)
	p.must(err)
	if len(summaries) != 2 || summaries[0].Created != 3 || summaries[1].Created != 1 {
		t.Errorf("%d scans, the first %+v; want one of 3 and one of 1", len(summaries), *summaries[0])
	}
}

// Findings that were imported without an analysis are adopted by the analysis that reports them; the others
// are closed by the second import of an analysis, and not before.
func TestFindingsOfNoAnalysisAreTakenOverByWhatReportsThem(t *testing.T) {
	p := newProject(t)
	results := numbered(6)
	p.imports(document(results...), commitA)
	p.muteAll()
	before := p.versions()
	ruby, python := inAnalysis("ruby/", document(results[:2]...)), inAnalysis("python/", document(results[2:4]...))
	if s := p.imports(ruby, commitB); s.Adopted != 2 || s.NotAdopted != 4 || s.Created+s.Closed != 0 {
		t.Errorf("the first import of Ruby: %+v, want 2 adopted and 4 left", *s)
	}
	if s := p.imports(python, commitB); s.Adopted != 2 || s.NotAdopted != 2 || s.Created+s.Closed != 0 {
		t.Errorf("the first import of Python: %+v, want 2 adopted and 2 left", *s)
	}
	if s := p.imports(ruby, commitB); s.Unchanged != 2 || s.Closed != 2 {
		t.Errorf("the second import of Ruby: %+v, want the 2 closed that neither reports", *s)
	}
	if s := p.imports(python, commitB); s.Unchanged != 2 || s.Closed != 0 {
		t.Errorf("the second import of Python: %+v, want nothing new", *s)
	}
	p.wantState("in the end", 4, 2, 6)
	for name := range p.findings() {
		if before[name] == "" {
			t.Errorf("%s is a new finding", name)
		}
	}
}

// A job that still runs without an analysis keeps its findings.
func TestAJobOfNoAnalysisKeepsItsFindings(t *testing.T) {
	p := newProject(t)
	results := numbered(4)
	plain, named := document(results[:2]...), inAnalysis("other/", document(results[2:]...))
	earlier := collect(t, importer.Choices{StartedAt: time.Now().Add(-time.Hour)}, named)
	_, err := p.tryImport(importer.Options{}, earlier)
	p.must(err)
	p.imports(plain, commitA)
	for range 2 {
		if s := p.imports(named, commitB); s.Closed+s.Adopted+s.Created != 0 {
			t.Errorf("the analysis touches what is of none: %+v", *s)
		}
	}
	p.wantState("both", 4, 0, 0)
}

func TestAnAnalysisThatChangesWithEachRunIsRefused(t *testing.T) {
	p := newProject(t)
	day := func(id string) string { return inAnalysis(id, document(numbered(3)...)) }
	s := p.imports(day("nightly/2026-11-21/"), commitA)
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "--analysis") {
		t.Errorf("warnings %v, want one that names --analysis", s.Warnings)
	}
	before := p.versions()
	_, err := p.tryImport(importer.Options{}, collect(t, importer.Choices{}, day("nightly/2026-11-22/")))
	p.wantRefused(err, `"nightly/2026-11-22"`, `--analysis "nightly/2026-11-21"`)
	stable := "nightly/2026-11-21"
	summaries, err := p.tryImport(importer.Options{}, collect(t, importer.Choices{Analysis: &stable}, day("nightly/2026-11-23/")))
	p.must(err)
	if s := summaries[0]; s.Unchanged != 3 || len(s.Warnings) != 0 || fmt.Sprint(before) != fmt.Sprint(p.versions()) {
		t.Errorf("with --analysis: %+v, want 3 unchanged and nothing written", *s)
	}
}

// Known findings under a new analysis name would lose all decisions.
func TestARenamedAnalysisIsRefusedWhereSomebodyHasDecided(t *testing.T) {
	p := newProject(t)
	p.imports(inAnalysis("shop/", document(numbered(3)...)), commitA)
	p.muteAll()
	for _, other := range []string{inAnalysis("store/", document(numbered(3)...)), document(numbered(3)...)} {
		_, err := p.tryImport(importer.Options{}, collect(t, importer.Choices{}, other))
		p.wantRefused(err, "3 of 3 results", `--analysis "shop"`, "--force")
	}
	p.wantState("refused", 3, 0, 3)
	summaries, err := p.tryImport(importer.Options{Force: true}, collect(t, importer.Choices{}, inAnalysis("store/", document(numbered(3)...))))
	p.must(err)
	if s := summaries[0]; s.Created != 3 {
		t.Errorf("with force: %+v, want 3 created", *s)
	}
	if s := p.imports(inAnalysis("store/", document(numbered(3)...)), ""); s.Unchanged != 3 {
		t.Errorf("once it is known: %+v, want 3 unchanged", *s)
	}
}

// lastStart returns the start of the project's latest scan.
func (p *project) lastStart() time.Time {
	p.Helper()
	var last time.Time
	for _, scan := range p.scans() {
		if scan.Spec.StartedAt.After(last) {
			last = scan.Spec.StartedAt.Time
		}
	}
	return last
}

// Whether a scan is too old is decided per analysis.
func TestAnalysesHaveAgesOfTheirOwn(t *testing.T) {
	p := newProject(t)
	p.imports(inAnalysis("new/", document(numbered(1)...)), commitA)
	old := p.lastStart().Add(-time.Hour)
	_, err := p.tryImport(importer.Options{}, collect(t, importer.Choices{StartedAt: old}, inAnalysis("old/", document(numbered(2)[1:]...))))
	p.must(err)
	_, err = p.tryImport(importer.Options{}, collect(t, importer.Choices{StartedAt: old}, inAnalysis("new/", document(numbered(1)...))))
	p.wantRefused(err, "before the last completed one")
}

// A finding that another import adopts just before this import writes it stays with the other one.
func TestAFindingThatIsTakenOverMeanwhileIsLeftAlone(t *testing.T) {
	p := newProject(t)
	p.imports(document(numbered(2)...), commitA)
	taken := p.titled("problem 000").Name
	var once sync.Once
	summaries, err := p.tryImport(importer.Options{OnProgress: func(int, int) {
		once.Do(func() { p.triage(taken, `{"spec":{"analysis":"python"}}`) })
	}}, collect(t, importer.Choices{}, inAnalysis("ruby/", document(numbered(2)...))))
	p.must(err)
	p.wantAdds(summaries[0])
	if s := summaries[0]; s.Updated != 1 || s.Skipped != 1 || p.findings()[taken].Spec.Analysis != "python" {
		t.Errorf("%+v, want 1 updated, and 1 skipped that is Python's", *s)
	}
}
