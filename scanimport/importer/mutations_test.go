package importer

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

// writeDocs writes the table of this suite into the docs instead of comparing it.
var writeDocs = flag.Bool("write-docs", false, "write docs/recognition.md anew")

// memory is an in-memory project for imports.
type memory struct {
	t        *testing.T
	findings map[string]*v1alpha1.Finding
	// scans by tool.
	scans   map[string]history
	scanned int
	// choices for the imports.
	choices Choices
	// incomplete is why the next scans have not looked at everything; nil: they have.
	incomplete []string
	// plan of the last scan.
	plan *plan
	// lost reports, by number, which writes fail because the import is cut off; nil: none. After a lost write, no later
	// stage is written.
	lost func(i int) bool
}

func newMemory(t *testing.T) *memory { return &memory{t: t, findings: map[string]*v1alpha1.Finding{}} }

// imports imports a document and returns the names of the findings of its results, by their origin; newcomers have an
// empty origin.
func (m *memory) imports(doc object) map[string][]string {
	m.t.Helper()
	log, err := sarif.Parse(bytes.NewReader(harness.JSON(m.t, doc)), sarif.Options{})
	harness.Must(m.t, err)
	var origins []string
	for i, run := range runsOf(doc) {
		results := resultsOf(run)
		for j := range log.Runs[i].Results {
			r := &log.Runs[i].Results[j]
			from, _ := results[r.Index][origin].(string)
			r.Index = len(origins)
			origins = append(origins, from)
		}
	}
	batches, err := Collect([]File{{Name: "file", Log: log}}, m.choices, time.Now())
	harness.Must(m.t, err)
	names := map[string][]string{}
	for _, b := range batches {
		m.scan(b, func(index int, name string) { names[origins[index]] = append(names[origins[index]], name) })
	}
	return names
}

// scan changes the findings as an import of the batch would, and returns what it wrote.
func (m *memory) scan(b *Batch, named func(index int, name string)) []change {
	m.scanned++
	b.Incomplete = m.incomplete
	complete := b.complete()
	c := &scanContext{repository: "shop", project: "web", tool: b.Tool, analysis: b.Analysis, category: b.Category, scanID: fmt.Sprintf("s-%d", m.scanned), startedAt: v1alpha1.NewTime(time.Now())}
	there := b.merged(slices.DeleteFunc(m.there(), func(f v1alpha1.Finding) bool { return !slices.Contains(b.names(), f.Spec.Tool) }))
	past := history{}
	for _, tool := range b.names() {
		maps.Copy(past, m.scans[tool])
	}
	k := past.knownTo(b, there, nil)
	scan := pastScan{series: b.series(), startedAt: c.startedAt.Time, recordedAt: time.Now(), succeeded: m.lost == nil && complete}
	m.scans = maps.Clone(m.scans)
	if m.scans == nil {
		m.scans = map[string]history{}
	}
	m.scans[b.Tool] = past
	results, _, _ := report(m.t.Context(), c, b)
	for i, match := range recognise(c, b, results, k) {
		if match.before != nil || results[i].spec.Suppression == nil {
			named(results[i].result.Index, match.name)
		}
	}
	p := diff(c, b, results, k)
	m.plan = &p
	var changes []change
	lost := false
	known, added, gone := p.stages()
	for _, stage := range [][]change{known, added, gone} {
		before := len(changes)
		changes = append(changes, stage...)
		lostBefore := lost
		for i, ch := range stage {
			if m.lost != nil && (lostBefore || m.lost(before+i)) {
				lost = true
				continue
			}
			m.write(&ch)
		}
	}
	scan.incomplete = !complete && !lost
	past[c.scanID] = scan
	return changes
}

func (m *memory) write(ch *change) {
	before := cmp.Or(m.findings[ch.name], &v1alpha1.Finding{})
	ch.spec.Triage = before.Spec.Triage
	m.findings[ch.name] = &v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: ch.name}, Spec: ch.spec, Status: before.Status}
}

// there returns the findings, sorted by name.
func (m *memory) there() []v1alpha1.Finding {
	var out []v1alpha1.Finding
	for _, name := range slices.Sorted(maps.Keys(m.findings)) {
		out = append(out, *m.findings[name])
	}
	return out
}

// observe updates the findings as the controllers would.
func (m *memory) observe() {
	for _, f := range m.findings {
		f.Generation = f.Status.ObservedGeneration + 1
		f.Status = findingstate.Observe(f, nil, time.Now())
	}
}

// mute mutes every finding.
func (m *memory) mute() {
	for _, f := range m.findings {
		f.Spec.Triage.UserStatus, f.Spec.Triage.Basis = v1alpha1.UserStatusMuted, findingstate.Basis(&f.Spec)
	}
}

// outcome of one mutation of one file.
type outcome struct {
	applies bool
	// all counts the decisions that could be kept, kept those that were, and marked those kept with a doubt.
	all, kept, marked int
	// wrong counts decisions that silently moved to another problem; doubted those that did so with a doubt.
	wrong, doubted int
	lost           []string
}

// decidedAbout returns the state after the first import of a document, with a decision about everything, and the names
// of the findings by the origin of their results.
func decidedAbout(t *testing.T, doc object) (*memory, map[string][]string) {
	t.Helper()
	m := newMemory(t)
	names := m.imports(doc)
	m.mute()
	return m, names
}

func mutate(t *testing.T, doc object, known *memory, before map[string][]string, change mutation) outcome {
	t.Helper()
	// Imports replace findings and change none in place, so the mutations can share those known before.
	m := &memory{t: t, findings: maps.Clone(known.findings), scans: known.scans, scanned: known.scanned}
	after := clone(doc)
	if !change.apply(after) {
		return outcome{}
	}
	if was, is := toolOf(doc), toolOf(after); fingerprints.CurrentName(was) != fingerprints.CurrentName(is) {
		m.choices.Formerly = was
	}
	now := m.imports(after)
	if change.back {
		now = m.imports(doc)
	}
	out := outcome{applies: true}
	owners := map[string]string{}
	for from, names := range before {
		owners[names[0]] = from
	}
	marked := func(name string) bool {
		f := m.findings[name]
		if f.Spec.Doubt != nil && !findingstate.Stale(f) {
			t.Errorf("%s: the decision about %s is in doubt, and not stale", change.name, name)
		}
		return f.Spec.Closed != nil || f.Spec.Doubt != nil
	}
	for from, names := range now {
		for _, name := range names {
			owner, decided := owners[name]
			if !decided || owner == from {
				continue
			}
			if marked(name) {
				out.doubted++
			} else {
				out.wrong++
				f := m.findings[name]
				t.Logf("%s: the decision about %s is now about %q: %+v", change.name, owner, from, evidenceOf(&f.Spec, nil))
			}
		}
	}
	for from, names := range before {
		if len(now[from]) == 0 {
			continue // it is gone, or merged with a duplicate
		}
		out.all++
		if slices.Contains(now[from], names[0]) {
			out.kept++
			if marked(names[0]) {
				out.marked++
			}
		} else {
			f := m.findings[names[0]]
			out.lost = append(out.lost, fmt.Sprintf("%s %s", f.Spec.RuleID, place(&f.Spec)))
		}
	}
	return out
}

func place(spec *v1alpha1.FindingSpec) string {
	if l := spec.Details.Location; l != nil {
		return fmt.Sprintf("%s:%d", l.FilePath, l.LineNumber)
	}
	return ""
}

// Every finding of every file gets a decision, then the file is mutated. The test counts which decisions stay, and
// whether one silently moves to another problem.
func TestDecisionsStayWithTheirFindings(t *testing.T) {
	table, tools := map[string]map[string]outcome{}, map[string]string{}
	files := needs.SARIF(t, "")
	var mu sync.Mutex
	t.Run("files", func(t *testing.T) { // returns when all of them have ended
		for _, path := range files {
			name := strings.TrimSuffix(filepath.Base(path), ".sarif")
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				doc := readDocument(t, path)
				row := mutateEach(t, doc)
				moveBesideSuppressed(t, doc)
				mu.Lock()
				defer mu.Unlock()
				table[name], tools[name] = row, toolOf(doc)
			})
		}
	})
	if share := overall(table); share < 0.98 {
		t.Errorf("%.1f %% of decisions stay, averaged over files and mutations; want at least 98 %%", 100*share)
	}
	writeTable(t, tools, table)
}

// mutateEach applies each mutation to a document separately.
func mutateEach(t *testing.T, doc object) map[string]outcome {
	t.Helper()
	row := map[string]outcome{}
	known, before := decidedAbout(t, doc)
	for _, change := range mutations {
		out := mutate(t, doc, known, before, change)
		row[change.name] = out
		if out.wrong > 0 {
			t.Errorf("%s: %d decisions landed on another problem without a mark", change.name, out.wrong)
		}
		if out.kept < out.all {
			t.Logf("%s: kept %d of %d; lost %s", change.name, out.kept, out.all, strings.Join(out.lost[:min(5, len(out.lost))], "; "))
		}
	}
	return row
}

// moving names mutations that only move results.
var moving = []string{"lines moved", "lines inserted", "file renamed", "file moved", "another root"}

// moveBesideSuppressed suppresses every second result of a document before its first import. These results have no
// finding, and no effect on the others when all move.
func moveBesideSuppressed(t *testing.T, doc object) {
	t.Helper()
	suppress(doc)
	known, before := decidedAbout(t, doc)
	for _, change := range mutations {
		if !slices.Contains(moving, change.name) {
			continue
		}
		if out := mutate(t, doc, known, before, change); out.kept < out.all || out.wrong > 0 {
			t.Errorf("%s, beside suppressed results: kept %d of %d, %d on another problem without a mark; lost %v", change.name, out.kept, out.all, out.wrong, out.lost)
		}
	}
}

// overall returns the share of decisions kept, averaged over files and mutations.
func overall(table map[string]map[string]outcome) float64 {
	sum, n := 0.0, 0
	for _, row := range table {
		for _, out := range row {
			if out.applies && out.all > 0 {
				sum += float64(out.kept) / float64(out.all)
				n++
			}
		}
	}
	return sum / float64(max(n, 1))
}

func (o outcome) cell() string {
	if !o.applies || o.all == 0 && o.wrong+o.doubted == 0 {
		return "-"
	}
	cell := "-"
	if o.all > 0 {
		cell = fmt.Sprintf("%d%%", 100*o.kept/o.all)
	}
	if o.marked > 0 {
		cell += fmt.Sprintf(" (%d marked)", o.marked)
	}
	if o.doubted > 0 {
		cell += fmt.Sprintf(", %d elsewhere, marked", o.doubted)
	}
	if o.wrong > 0 {
		cell += fmt.Sprintf(", %d WRONG", o.wrong)
	}
	return cell
}

// recognitionPage contains the table; tableBegin and tableEnd mark its place.
const (
	recognitionPage = "../../docs/recognition.md"
	tableBegin      = "<!-- written by go test ./scanimport/importer -run DecisionsStay -write-docs -->\n"
	tableEnd        = "<!-- end -->\n"
)

// writeTable compares the page with the table, or with -write-docs updates it.
func writeTable(t *testing.T, tools map[string]string, table map[string]map[string]outcome) {
	t.Helper()
	page := harness.File(t, recognitionPage)
	before, rest, ok := strings.Cut(page, tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table", recognitionPage)
	}
	now := before + tableBegin + tableOf(tools, table) + tableEnd + after
	switch {
	case now == page:
	case *writeDocs:
		harness.Must(t, os.WriteFile(recognitionPage, []byte(now), 0o600))
	default:
		t.Errorf("%s does not show what the suite counts: write it anew with -write-docs. It counts:\n%s", recognitionPage, tableOf(tools, table))
	}
}

// tableOf returns tables with a row per file, one table for each group of mutations: a single table would be too wide
// to read.
func tableOf(tools map[string]string, table map[string]map[string]outcome) string {
	var b strings.Builder
	for part := range slices.Chunk(mutations, 8) {
		b.WriteString("\n| Tool | File |")
		for _, m := range part {
			fmt.Fprintf(&b, " %s |", m.name)
		}
		fmt.Fprintf(&b, "\n|---|---%s|\n", strings.Repeat("|---", len(part)))
		for _, name := range slices.SortedFunc(maps.Keys(table), cmp.Compare) {
			fmt.Fprintf(&b, "| %s | %s |", tools[name], name)
			for _, m := range part {
				fmt.Fprintf(&b, " %s |", table[name][m.name].cell())
			}
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, "\nOf all decisions %.1f %% stay: per file and mutation, then averaged. On another problem without a mark: %d.\n\n", 100*overall(table), wrong(table))
	return b.String()
}

func wrong(table map[string]map[string]outcome) (n int) {
	for _, row := range table {
		for _, out := range row {
			n += out.wrong
		}
	}
	return n
}

// madeDocuments returns small documents of three kinds of tools, for use without the corpus.
func madeDocuments() map[string]object {
	made := map[string]object{}
	for _, name := range []string{"code", "packages", "plain"} {
		var results []any
		for i := range 9 {
			region := object{"startLine": float64(10 + 17*i), "startColumn": 3.0}
			r := object{"ruleId": fmt.Sprintf("R%d", i%2), "level": "warning", "message": object{"text": "do not do this"}}
			uri := fmt.Sprintf("src/file%d.go", i/3)
			switch name {
			case "code":
				region["snippet"] = object{"text": fmt.Sprintf("call%d()", i)}
			case "packages":
				uri, region = "go.sum", object{"startLine": 1.0}
				r["ruleId"] = fmt.Sprintf("CVE-2024-%d", 1000+i/2)
				r["message"] = object{"text": fmt.Sprintf("Package: lib%d\nInstalled Version: 1.%d.0\nVulnerability CVE-2024-%d\nSeverity: MEDIUM\nFixed Version: 2.%d.0", i, i, 1000+i/2, i)}
			}
			r["locations"] = []any{object{"physicalLocation": object{"artifactLocation": object{"uri": uri}, "region": region}}}
			results = append(results, r)
		}
		tool := map[string]string{"packages": "Trivy"}[name]
		made[name] = object{"version": "2.1.0", "runs": []any{object{"tool": object{"driver": object{"name": cmp.Or(tool, "lint")}}, "results": results}}}
	}
	return made
}

func TestDecisionsStayInMadeDocuments(t *testing.T) {
	for name, doc := range madeDocuments() {
		doc := decodeDocument(t, harness.JSON(t, doc))
		known, before := decidedAbout(t, doc)
		for _, change := range mutations {
			out := mutate(t, doc, known, before, change)
			if out.kept < out.all || out.wrong > 0 {
				t.Errorf("%s, %s: kept %d of %d, %d on another problem without a mark; lost %v", name, change.name, out.kept, out.all, out.wrong, out.lost)
			}
		}
		moveBesideSuppressed(t, doc)
	}
}
