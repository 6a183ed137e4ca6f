package import_test

import (
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/test/builder"
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
	stays := builder.Result{Rule: "stays", Path: "a.go", Message: "stays", Line: 1}
	moves := builder.Result{Rule: "moves", Path: "b.go", Message: "moves", Line: 2}
	goes := builder.Result{Rule: "goes", Path: "c.go", Message: "goes", Level: "warning", Line: 3}
	p.did("the first import", p.imports(document(stays, moves, goes), commitA), counts{Created: 3})
	muted := p.titled("goes")
	detectedAt := muted.Spec.DetectedAt
	p.triage(muted.Name, `{"spec":{"triage":{"userStatus":"muted","reason":"not-reachable","expiresAt":"2099-12-31T00:00:00Z","comments":"not reachable"}}}`)
	kept := p.titled("stays").ResourceVersion
	want := p.titled("goes").Spec.Triage

	moves.Line = 40
	s := p.imports(document(stays, moves), commitB)
	p.did("the second import", s, counts{Updated: 1, Unchanged: 1, Closed: 1})
	harness.Same(t, "version of the finding that did not change", kept, p.titled("stays").ResourceVersion)
	moved := p.titled("moves")
	if moved.Spec.Details.Location.LineNumber != 40 || moved.Spec.CommitHash != commitB || moved.Spec.Scan.ScanID != s.Scan {
		t.Errorf("the finding that changed: line %d, commit %s, scan %s", moved.Spec.Details.Location.LineNumber, moved.Spec.CommitHash, moved.Spec.Scan.ScanID)
	}
	gone := p.titled("goes")
	if gone.Spec.Closed == nil || gone.Spec.Closed.ScanID != s.Scan || gone.Spec.CommitHash != commitA {
		t.Errorf("the finding that is gone: closed %+v, commit %s; want closed by %s, with its facts as they were", gone.Spec.Closed, gone.Spec.CommitHash, s.Scan)
	}
	harness.Same(t, "triage after closing", want, gone.Spec.Triage)

	p.did("once more", p.imports(document(stays, moves), commitB), counts{Unchanged: 2})
	harness.Same(t, "version of the closed finding", gone.ResourceVersion, p.titled("goes").ResourceVersion)

	p.did("the last import", p.imports(document(stays, moves, goes), commitB), counts{Reopened: 1, Unchanged: 2})
	back := p.titled("goes")
	if back.Spec.Closed != nil || back.Name != muted.Name || !back.Spec.DetectedAt.Equal(detectedAt) {
		t.Errorf("the finding that is back: closed %v, name %s, detected %s; want open, %s, %s", back.Spec.Closed, back.Name, back.Spec.DetectedAt, muted.Name, detectedAt)
	}
	harness.Same(t, "triage after reopening", want, back.Spec.Triage)
}

// restore replaces the findings by those that a backup creates: their client then owns every fact.
func (p *project) restore() {
	p.Helper()
	p.rewrite(func(map[string]any) {})
}

// rewrite replaces the findings by those that another client creates, which changes their specs.
func (p *project) rewrite(change func(spec map[string]any)) {
	p.Helper()
	for _, f := range p.findings() {
		harness.Must(p, env.Client.Delete(p.Context(), &f))
		f.ResourceVersion, f.UID, f.ManagedFields = "", "", nil
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&f)
		harness.Must(p, err)
		change(content["spec"].(map[string]any))
		rewritten := &unstructured.Unstructured{Object: content}
		rewritten.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Finding"))
		harness.Must(p, env.Client.Create(p.Context(), rewritten, client.FieldOwner("kubectl-create")))
	}
}

// crossed returns a client whose first JSON patch of each finding comes after another write.
func (p *project) crossed() *importer.Client {
	p.Helper()
	var seen sync.Map
	return p.takingOver(func(r *http.Request) {
		if _, crossed := seen.LoadOrStore(r.URL.Path, true); !crossed {
			env.Patch(p, partial("Finding", path.Base(r.URL.Path)), `{"metadata":{"annotations":{"other":"write"}}}`)
		}
	})
}

// takingOver returns a client that calls the function before each JSON patch, as which it takes over facts.
func (p *project) takingOver(before func(*http.Request)) *importer.Client {
	p.Helper()
	return through(p, scanner, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
		if r.Header.Get("Content-Type") == string(types.JSONPatchType) {
			before(r)
		}
		return next.RoundTrip(r)
	})
}

func TestWhatAnImportLeavesOutGoesFromARestoredFinding(t *testing.T) {
	for name, tool := range map[string]string{"same name": "lint", "new name": "lint-new"} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			gone := builder.Result{Rule: "gone", Path: "a.go", Message: "gone", Line: 1}
			muted := builder.Result{Rule: "muted", Path: "b.go", Message: "muted", Line: 2, Snippet: "x()"}
			p.imports(document(gone, muted), commitA)
			p.triage(p.titled("muted").Name, `{"spec":{"triage":{"userStatus":"active","comments":"real"}}}`)
			muted.Suppressed = "an example"
			p.imports(document(muted), commitA)
			p.restore()
			want := p.titled("muted").Spec.Triage

			muted.Suppressed, muted.Snippet = "", ""
			document := builder.SARIF(tool, gone, muted)
			batches := collect(t, importer.Choices{Formerly: map[string]string{"lint-new": "lint"}[tool]}, document)
			summaries, err := importer.New(p.crossed(), p.target(), importer.Options{}).Import(t.Context(), batches)
			harness.Must(p, err)
			p.did("the import after the restore", summaries[0], counts{Updated: 1, Reopened: 1})
			back, now := p.titled("gone"), p.titled("muted")
			if back.Spec.Closed != nil || now.Spec.Suppression != nil || now.Spec.Details.Code != "" || now.Spec.CommitHash != "" {
				t.Errorf("closed %+v, suppression %+v, code %q, commit %q; want none", back.Spec.Closed, now.Spec.Suppression, now.Spec.Details.Code, now.Spec.CommitHash)
			}
			harness.Same(t, "the person's decision", want, now.Spec.Triage)
			p.did("the next import", p.imports(document, ""), counts{Unchanged: 2})
			harness.Same(t, "version after the next import", now.ResourceVersion, p.titled("muted").ResourceVersion)
		})
	}
}

// Imports write whole seconds, whatever was written first.
func TestAFindingDetectedAtAFractionOfASecondIsChangedClosedAndReopened(t *testing.T) {
	p := newProject(t)
	p.imports(document(stays, goes, comes), commitA)
	p.imports(document(stays, goes), commitA)
	p.rewrite(func(spec map[string]any) {
		spec["detectedAt"] = strings.Replace(spec["detectedAt"].(string), "Z", ".123Z", 1)
	})
	changed := stays
	changed.Line++
	p.did("the import", p.imports(document(changed, comes), commitB), counts{Updated: 1, Closed: 1, Reopened: 1})
}

// An apply is read as YAML, which refuses most control characters. Other clients store them as JSON.
func TestAFindingWithControlCharactersIsClosedAndRenamed(t *testing.T) {
	p := newProject(t)
	p.imports(document(stays, goes), commitA)
	p.imports(document(stays), commitA)
	const odd = "the caller\u0092s\u007f \u0085\u009f\ufeff\ufffe\uffff text"
	p.rewrite(func(spec map[string]any) { spec["details"].(map[string]any)["description"] = odd })
	s := p.importsAs("lint", builder.SARIF("lint-new", comes))
	p.did("one is gone", s, counts{Created: 1, Closed: 1})
	p.wantNoFactOf("lint")
	for _, title := range []string{"stays", "goes"} {
		harness.Same(t, title, odd, p.titled(title).Spec.Details.Description)
	}
}

func TestOneFileForTwoProjectsGivesTwoSets(t *testing.T) {
	a, b := newProject(t), (*project)(nil)
	t.Run("b", func(t *testing.T) { b = newProject(t) })
	b = &project{t, b.name}
	file := document(numbered(5)...)
	a.imports(file, commitA)
	versions := a.versions()
	b.did("the second project", b.imports(file, commitA), counts{Created: 5})
	harness.Same(t, "versions in the first project", versions, a.versions())
	for name := range b.findings() {
		if _, shared := versions[name]; shared {
			t.Errorf("finding %s is in both projects", name)
		}
	}
}

func TestTwoToolsLeaveEachOthersFindingsAlone(t *testing.T) {
	p := newProject(t)
	p.imports(builder.SARIF("first", numbered(3)...), commitA)
	versions := p.versions()
	p.did("the second tool", p.imports(builder.SARIF("second", numbered(3)...), commitA), counts{Created: 3})
	p.did("the second tool, clean", p.imports(builder.SARIF("second"), commitA), counts{Closed: 3})
	for name, version := range versions {
		harness.Same(t, "version of the first tool's finding "+name, version, p.versions()[name])
	}
}

func TestAnIncompleteRunClosesNothing(t *testing.T) {
	p := newProject(t)
	p.imports(document(numbered(2)...), commitA)
	before := p.versions()
	failed := strings.Replace(document(), `"results"`, `"invocations":[{"executionSuccessful":false}],"results"`, 1)
	s := p.imports(failed, commitB)
	if s.Closed != 0 || s.NotReported != 2 {
		t.Errorf("%+v, want none closed and 2 not reported", *s)
	}
	harness.Same(t, "versions of the findings", before, p.versions())
	for _, scan := range p.scans() {
		if scan.Name == s.Scan && scan.Spec.Outcome != v1alpha1.ScanFailed {
			t.Errorf("the scan counts as %s", scan.Spec.Outcome)
		}
	}
}

// If one tool's results are refused, those of the other must not be written either.
func TestARefusedBatchHoldsBackTheOthers(t *testing.T) {
	p := newProject(t)
	p.imports(builder.SARIF("zeta", numbered(20)...), commitA)
	before := p.versions()
	_, err := p.tryImport(importer.Options{}, collect(t, importer.Choices{}, builder.SARIF("alpha", numbered(3)...), builder.SARIF("zeta")))
	p.wantRefused(err, "zeta", "20 of 20")
	harness.Same(t, "versions of the findings after a refused import", before, p.versions())
}

func TestAnOlderScanIsRefused(t *testing.T) {
	p := newProject(t)
	now := time.Now().UTC().Truncate(time.Second)
	at := func(started time.Time, results ...builder.Result) []*importer.Batch {
		return collect(t, importer.Choices{StartedAt: started}, document(results...))
	}
	p.importsAll(importer.Options{}, at(now, numbered(2)...))
	before, scans := p.versions(), len(p.scans())

	_, err := p.tryImport(importer.Options{}, at(now.Add(-time.Second), numbered(1)...))
	p.wantRefused(err, "before the last completed one", "--started-at (over REST started_at)", "--force (over REST force=true)")
	if d := cmp.Diff(before, p.versions()); d != "" || len(p.scans()) != scans {
		t.Errorf("a refused import wrote: %d scans, before %d; findings (-before +after):\n%s", len(p.scans()), scans, d)
	}
	again := p.importsAll(importer.Options{}, at(now, numbered(2)...))
	p.did("the same scan again", again[0], counts{Unchanged: 2})
	forced := p.importsAll(importer.Options{Force: true}, at(now.Add(-time.Second), numbered(1)...))
	p.did("with force", forced[0], counts{Unchanged: 1, Closed: 1})
}

func TestAMissingTargetIsRefused(t *testing.T) {
	p := newProject(t)
	c := newClient(p, scanner)
	for name, tc := range map[string]struct {
		reason string
		target importer.Target
		words  []string
	}{
		"repository": {"a finding without a repository shows nowhere", importer.Target{Namespace: namespace, Repository: "nowhere", Project: p.name}, []string{`no repository "nowhere"`, "kubectl get repository",
			"create and report on repositories.appsec.dev (ClusterRole findings-admin)"}},
		"project": {"a finding without a project shows nowhere", importer.Target{Namespace: namespace, Repository: repositoryName, Project: "nowhere"}, []string{`no project "nowhere"`, "kubectl get project -n " + namespace}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := importer.New(c, tc.target, importer.Options{}).Import(t.Context(), collect(t, importer.Choices{}, document(numbered(1)...)))
			p.wantRefused(err, tc.words...)
		})
	}
	harness.Same(t, "objects written", 0, len(p.findings())+len(p.scans()))
}

func TestADryRunShowsTheDifferenceAndWritesNothing(t *testing.T) {
	p := newProject(t)
	results := numbered(4)
	p.imports(document(results[:3]...), commitA)
	before, scans, leases := p.versions(), len(p.scans()), p.leases()

	results[1].Level = "note"
	batches := collect(t, importer.Choices{}, document(results[1:]...), builder.SARIF("new", results[0]))
	s := p.importsAll(importer.Options{DryRun: true}, batches)[0]
	p.did("dry run", s, counts{Created: 1, Updated: 1, Unchanged: 1, Closed: 1})
	harness.Same(t, "scan of a dry run", "", s.Scan)
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
