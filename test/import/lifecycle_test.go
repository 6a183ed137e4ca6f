package import_test

import (
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// triage makes a decision about a finding as a person would.
func (p *project) triage(name, patch string) {
	p.Helper()
	finding := &v1alpha1.Finding{}
	finding.Namespace, finding.Name = namespace, name
	env.Patch(p, finding, patch)
}

func TestChangedGoneAndReturnedResultsKeepTheirTriage(t *testing.T) {
	p := newProject(t)
	stays := result{rule: "stays", path: "a.go", message: "stays", level: "error", line: 1}
	moves := result{rule: "moves", path: "b.go", message: "moves", level: "error", line: 2}
	goes := result{rule: "goes", path: "c.go", message: "goes", level: "warning", line: 3}
	if s := p.imports(document(stays, moves, goes), commitA); s.Created != 3 {
		t.Fatalf("first import: %+v, want 3 created", *s)
	}
	muted := p.titled("goes")
	detectedAt := muted.Spec.DetectedAt
	p.triage(muted.Name, `{"spec":{"triage":{"userStatus":"muted","reason":"not-reachable","expiresAt":"2099-12-31T00:00:00Z","comments":"not reachable"}}}`)
	kept := p.titled("stays").ResourceVersion
	want := p.titled("goes").Spec.Triage

	moves.line = 40
	s := p.imports(document(stays, moves), commitB)
	if s.Updated != 1 || s.Closed != 1 || s.Unchanged != 1 || s.Created+s.Reopened != 0 {
		t.Errorf("second import: %+v, want 1 updated, 1 closed, 1 unchanged", *s)
	}
	if got := p.titled("stays").ResourceVersion; got != kept {
		t.Errorf("the finding that did not change went from version %s to %s", kept, got)
	}
	moved := p.titled("moves")
	if moved.Spec.Details.Location.LineNumber != 40 || moved.Spec.CommitHash != commitB || moved.Spec.Scan.ScanID != s.Scan {
		t.Errorf("the finding that changed: line %d, commit %s, scan %s", moved.Spec.Details.Location.LineNumber, moved.Spec.CommitHash, moved.Spec.Scan.ScanID)
	}
	gone := p.titled("goes")
	if gone.Spec.Closed == nil || gone.Spec.Closed.ScanID != s.Scan || gone.Spec.CommitHash != commitA {
		t.Errorf("the finding that is gone: closed %+v, commit %s; want closed by %s, with its facts as they were", gone.Spec.Closed, gone.Spec.CommitHash, s.Scan)
	}
	if d := cmp.Diff(want, gone.Spec.Triage); d != "" {
		t.Errorf("closing changed the triage (-before +after):\n%s", d)
	}

	version := gone.ResourceVersion
	if s := p.imports(document(stays, moves), commitB); s.Closed != 0 || s.Unchanged != 2 || p.titled("goes").ResourceVersion != version {
		t.Errorf("a closed finding was written again: %+v", *s)
	}

	if s := p.imports(document(stays, moves, goes), commitB); s.Reopened != 1 || s.Unchanged != 2 {
		t.Errorf("last import: %+v, want 1 reopened, 2 unchanged", *s)
	}
	back := p.titled("goes")
	if back.Spec.Closed != nil || back.Name != muted.Name || !back.Spec.DetectedAt.Equal(detectedAt) {
		t.Errorf("the finding that is back: closed %v, name %s, detected %s; want open, %s, %s", back.Spec.Closed, back.Name, back.Spec.DetectedAt, muted.Name, detectedAt)
	}
	if d := cmp.Diff(want, back.Spec.Triage); d != "" {
		t.Errorf("reopening changed the triage (-before +after):\n%s", d)
	}
}

// restore replaces the findings by those that a backup creates: their client then owns every fact.
func (p *project) restore() {
	p.Helper()
	for _, f := range p.findings() {
		p.must(env.Client.Delete(p.Context(), &f))
		f.ResourceVersion, f.UID, f.ManagedFields = "", "", nil
		p.must(env.Client.Create(p.Context(), &f, client.FieldOwner("kubectl-create")))
	}
}

// crossed returns a client whose first JSON patch of each finding comes after another write.
func (p *project) crossed() *importer.Client {
	p.Helper()
	var seen sync.Map
	config := rest.CopyConfig(scanner)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return harness.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("Content-Type") == string(types.JSONPatchType) {
				if _, crossed := seen.LoadOrStore(r.URL.Path, true); !crossed {
					env.Patch(p, partial("Finding", path.Base(r.URL.Path)), `{"metadata":{"annotations":{"other":"write"}}}`)
				}
			}
			return next.RoundTrip(r)
		})
	})
	c, err := importer.NewClient(config)
	p.must(err)
	return c
}

func TestWhatAnImportLeavesOutGoesFromARestoredFinding(t *testing.T) {
	for name, tool := range map[string]string{"same name": "lint", "new name": "lint-new"} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			gone := result{rule: "gone", path: "a.go", message: "gone", level: "error", line: 1}
			muted := result{rule: "muted", path: "b.go", message: "muted", level: "error", line: 2, code: "x()"}
			p.imports(document(gone, muted), commitA)
			p.triage(p.titled("muted").Name, `{"spec":{"triage":{"userStatus":"active","comments":"real"}}}`)
			muted.suppressed = "an example"
			p.imports(document(muted), commitA)
			p.restore()
			want := p.titled("muted").Spec.Triage

			muted.suppressed, muted.code = "", ""
			document := documentOf(tool, gone, muted)
			batches := collect(t, importer.Choices{Formerly: map[string]string{"lint-new": "lint"}[tool]}, document)
			summaries, err := importer.New(p.crossed(), p.target(), importer.Options{}).Import(t.Context(), batches)
			p.must(err)
			if s := summaries[0]; s.Reopened != 1 || s.Updated != 1 {
				t.Errorf("the import after the restore: %+v, want 1 reopened, 1 updated", *s)
			}
			back, now := p.titled("gone"), p.titled("muted")
			if back.Spec.Closed != nil || now.Spec.Suppression != nil || now.Spec.Details.Code != "" || now.Spec.CommitHash != "" {
				t.Errorf("closed %+v, suppression %+v, code %q, commit %q; want none", back.Spec.Closed, now.Spec.Suppression, now.Spec.Details.Code, now.Spec.CommitHash)
			}
			harness.Same(t, "the person's decision", want, now.Spec.Triage)
			if s := p.imports(document, ""); s.Unchanged != 2 || p.titled("muted").ResourceVersion != now.ResourceVersion {
				t.Errorf("the next import: %+v, want 2 unchanged", *s)
			}
		})
	}
}

// Another result similar to a finding must neither remove its triage nor take it over.
func TestTriageStaysWhileResultsLikeItComeAndGo(t *testing.T) {
	p := newProject(t)
	base := `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},"results":[%]}]}`
	one := func(message string) string {
		return `{"ruleId":"R","message":{"text":"` + message + `"},"partialFingerprints":{"primaryLocationLineHash":"abc:1"},
			"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.go"},"region":{"startLine":7}}}]}`
	}
	file := func(messages ...string) string {
		var list []string
		for _, m := range messages {
			list = append(list, one(m))
		}
		return strings.Replace(base, "%", strings.Join(list, ","), 1)
	}
	described := func(description string) v1alpha1.Finding {
		t.Helper()
		for _, f := range p.findings() {
			if f.Spec.Details.Description == description {
				return f
			}
		}
		t.Fatalf("no finding is described as %q", description)
		return v1alpha1.Finding{}
	}
	p.imports(file("n is unused"), commitA)
	first := described("n is unused")
	p.triage(first.Name, `{"spec":{"triage":{"userStatus":"muted"}}}`)

	if s := p.imports(file("m is unused", "n is unused"), commitB); s.Created != 1 || s.Unchanged != 1 || s.Closed != 0 {
		t.Errorf("one more: %+v, want 1 created, 1 unchanged", *s)
	}
	second := described("m is unused")
	if second.Spec.Triage.UserStatus != v1alpha1.UserStatusOpen || described("n is unused").Name != first.Name {
		t.Errorf("the new result took the triage of the old one: new %s %s, old %s", second.Name, second.Spec.Triage.UserStatus, described("n is unused").Name)
	}
	if s := p.imports(file("m is unused"), commitB); s.Unchanged != 1 || s.Closed != 1 || s.Created != 0 {
		t.Errorf("one less: %+v, want 1 unchanged, 1 closed", *s)
	}
	if got := described("m is unused"); got.Name != second.Name || got.Spec.Closed != nil || described("n is unused").Spec.Closed == nil {
		t.Errorf("the wrong one was closed: %s is %v", got.Name, got.Spec.Closed)
	}
}

func TestOneFileForTwoProjectsGivesTwoSets(t *testing.T) {
	a, b := newProject(t), (*project)(nil)
	t.Run("b", func(t *testing.T) { b = newProject(t) })
	b = &project{t, b.name}
	file := document(numbered(5)...)
	a.imports(file, commitA)
	versions := a.versions()
	if s := b.imports(file, commitA); s.Created != 5 {
		t.Errorf("second project: %+v, want 5 created", *s)
	}
	if d := cmp.Diff(versions, a.versions()); d != "" {
		t.Errorf("the import into one project changed the other (-before +after):\n%s", d)
	}
	for name := range b.findings() {
		if _, shared := versions[name]; shared {
			t.Errorf("finding %s is in both projects", name)
		}
	}
}

func TestTwoToolsLeaveEachOthersFindingsAlone(t *testing.T) {
	p := newProject(t)
	p.imports(documentOf("first", numbered(3)...), commitA)
	versions := p.versions()
	if s := p.imports(documentOf("second", numbered(3)...), commitA); s.Created != 3 || s.Closed != 0 {
		t.Errorf("second tool: %+v, want 3 created, none closed", *s)
	}
	if s := p.imports(documentOf("second"), commitA); s.Closed != 3 {
		t.Errorf("second tool, clean: %+v, want its 3 closed", *s)
	}
	for name, version := range versions {
		if got := p.versions()[name]; got != version {
			t.Errorf("finding %s of the first tool went from version %s to %s", name, version, got)
		}
	}
}

func TestSeveralFilesOfOneToolAreOneScan(t *testing.T) {
	p := newProject(t)
	results := numbered(4)
	batches := collect(t, importer.Choices{Commit: commitA}, document(results[:2]...), document(results[2:]...), documentOf("other", results[0]))
	summaries, err := p.tryImport(importer.Options{}, batches)
	p.must(err)
	if len(summaries) != 2 || summaries[0].Created != 4 || summaries[1].Created != 1 {
		t.Errorf("two files of one tool and one of another: %d scans, want 2 of 4 and 1 created", len(summaries))
	}
	if scans := p.scans(); len(scans) != 2 {
		t.Errorf("%d scans recorded, want 2", len(scans))
	}
}

func TestAnIncompleteRunClosesNothing(t *testing.T) {
	for name, tc := range map[string]struct{ reason, run string }{
		"results absent":  {"the tool did not get as far as to report", `"columnKind":"utf16CodeUnits"`},
		"results null":    {"null is not an empty list", `"results":null`},
		"unreadable":      {"the result that cannot be read may be one of them", `"results":[null]`},
		"tool has failed": {"what it did not report may be there all the same", `"results":[],"invocations":[{"executionSuccessful":false}]`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.imports(document(numbered(2)...), commitA)
			before := p.versions()
			s := p.imports(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint"}},`+tc.run+`}]}`, commitB)
			if s.Closed != 0 || s.NotReported != 2 {
				t.Errorf("%s: %+v, want none closed and 2 not reported", tc.reason, *s)
			}
			if d := cmp.Diff(before, p.versions()); d != "" {
				t.Errorf("%s: findings were written (-before +after):\n%s", tc.reason, d)
			}
			for _, scan := range p.scans() {
				if scan.Name == s.Scan && scan.Spec.Outcome != v1alpha1.ScanFailed {
					t.Errorf("%s: the scan counts as %s", tc.reason, scan.Spec.Outcome)
				}
			}
		})
	}
}

func TestClosingMostFindingsIsRefused(t *testing.T) {
	p := newProject(t)
	results := numbered(20)
	p.imports(document(results...), commitA)
	before := p.versions()

	few := collect(t, importer.Choices{Commit: commitB}, document(results[:9]...))
	_, err := p.tryImport(importer.Options{}, few)
	p.wantRefused(err, "11 of 20", "--force", "--dry-run")
	if d := cmp.Diff(before, p.versions()); d != "" {
		t.Errorf("a refused import wrote findings (-before +after):\n%s", d)
	}
	failed := 0
	for _, scan := range p.scans() {
		if scan.Spec.CompletedAt == nil {
			t.Errorf("scan %s has no end", scan.Name)
		}
		if scan.Spec.Outcome == v1alpha1.ScanFailed && strings.Contains(scan.Spec.Message, "more than half") {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d scans say that the closing was refused, want 1", failed)
	}

	summaries, err := p.tryImport(importer.Options{Force: true}, few)
	p.must(err)
	if summaries[0].Closed != 11 {
		t.Errorf("with force: %+v, want 11 closed", *summaries[0])
	}
}

// If one tool's results are refused, those of the other must not be written either.
func TestARefusedBatchHoldsBackTheOthers(t *testing.T) {
	p := newProject(t)
	p.imports(documentOf("zeta", numbered(20)...), commitA)
	before := p.versions()
	_, err := p.tryImport(importer.Options{}, collect(t, importer.Choices{}, documentOf("alpha", numbered(3)...), documentOf("zeta")))
	p.wantRefused(err, "zeta", "20 of 20")
	if d := cmp.Diff(before, p.versions()); d != "" {
		t.Errorf("findings were written (-before +after):\n%s", d)
	}
}

func TestAnOlderScanIsRefused(t *testing.T) {
	p := newProject(t)
	now := time.Now().UTC().Truncate(time.Second)
	at := func(started time.Time, results ...result) []*importer.Batch {
		return collect(t, importer.Choices{StartedAt: started}, document(results...))
	}
	_, err := p.tryImport(importer.Options{}, at(now, numbered(2)...))
	p.must(err)
	before, scans := p.versions(), len(p.scans())

	_, err = p.tryImport(importer.Options{}, at(now.Add(-time.Hour), numbered(1)...))
	p.wantRefused(err, "before the last completed one", "--force")
	if d := cmp.Diff(before, p.versions()); d != "" || len(p.scans()) != scans {
		t.Errorf("a refused import wrote: %d scans, before %d; findings (-before +after):\n%s", len(p.scans()), scans, d)
	}
	if _, err = p.tryImport(importer.Options{}, at(now, numbered(2)...)); err != nil {
		t.Errorf("the same scan again: %v, want it imported", err)
	}
	summaries, err := p.tryImport(importer.Options{Force: true}, at(now.Add(-time.Hour), numbered(1)...))
	p.must(err)
	if summaries[0].Closed != 1 {
		t.Errorf("with force: %+v, want 1 closed", *summaries[0])
	}
}

func TestATargetThatIsNotThereIsRefused(t *testing.T) {
	p := newProject(t)
	c, err := importer.NewClient(scanner)
	p.must(err)
	for name, tc := range map[string]struct {
		reason string
		target importer.Target
		words  []string
	}{
		"repository": {"a finding without a repository shows nowhere", importer.Target{Namespace: namespace, Repository: "nowhere", Project: p.name}, []string{`no repository "nowhere"`, "kubectl get repository"}},
		"project":    {"a finding without a project shows nowhere", importer.Target{Namespace: namespace, Repository: repositoryName, Project: "nowhere"}, []string{`no project "nowhere"`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := importer.New(c, tc.target, importer.Options{}).Import(t.Context(), collect(t, importer.Choices{}, document(numbered(1)...)))
			p.wantRefused(err, tc.words...)
		})
	}
	if n := len(p.findings()) + len(p.scans()); n != 0 {
		t.Errorf("%d objects were written", n)
	}
}

func TestADryRunShowsTheDifferenceAndWritesNothing(t *testing.T) {
	p := newProject(t)
	results := numbered(4)
	p.imports(document(results[:3]...), commitA)
	before, scans, leases := p.versions(), len(p.scans()), p.leases()

	results[1].level = "note"
	batches := collect(t, importer.Choices{}, document(results[1:]...), documentOf("new", results[0]))
	summaries, err := p.tryImport(importer.Options{DryRun: true}, batches)
	p.must(err)
	s := summaries[0]
	if s.Created != 1 || s.Updated != 1 || s.Closed != 1 || s.Unchanged != 1 || s.Scan != "" {
		t.Errorf("dry run: %+v, want 1 created, updated, closed and unchanged each, and no scan", *s)
	}
	actions := map[importer.Action]string{}
	for _, c := range s.Changes {
		actions[c.Action] = c.Place
	}
	want := map[importer.Action]string{importer.ActionCreate: "src/file003.go:13", importer.ActionUpdate: "src/file001.go:11", importer.ActionClose: "src/file000.go:10"}
	harness.Same(t, "changes", want, actions)
	if d := cmp.Diff(before, p.versions()); d != "" || len(p.scans()) != scans || p.leases() != leases {
		t.Errorf("a dry run wrote: %d scans, before %d; %d leases, before %d; findings (-before +after):\n%s", len(p.scans()), scans, p.leases(), leases, d)
	}
}
