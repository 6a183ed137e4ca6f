package importer

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/recognition"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
)

// importEarlier creates the findings as the version without recognition by evidence would have: names never change, and
// it stored fewer facts.
func (m *memory) importEarlier(b *Batch) {
	c := &scanContext{repository: "shop", project: "web", tool: b.Tool, category: b.Category, scanID: "s-0"}
	inputs := make([]fingerprints.Result, len(b.Results))
	for i := range b.Results {
		r := &b.Results[i]
		inputs[i] = fingerprints.Result{
			Rule: r.RuleID, Path: r.Location.Path, Fingerprints: r.Fingerprints, Message: r.Message, Snippet: r.Location.Snippet,
			Line: r.Location.Line, Column: r.Location.Column, ResultKey: fingerprints.ResultKey{Digest: digest(r)},
		}
	}
	for i, identity := range fingerprints.Identify(fingerprints.Scope{Repository: c.repository, Project: c.project, Tool: c.tool, Category: string(c.category)}, inputs) {
		if identity.Duplicate {
			continue
		}
		spec := c.spec(&b.Results[i])
		spec.Evidence, spec.Package, spec.Vulnerability = "", nil, nil
		spec.Class, spec.Details.Title, spec.Details.Score, spec.Details.ToolSeverity = "once another", "Once another", "", ""
		// It rated some tools differently, and recorded no basis of a decision.
		if spec.Details.Severity = v1alpha1.LevelHigh; i%2 == 0 {
			spec.Details.Severity = v1alpha1.LevelLow
		}
		spec.Triage.UserStatus = v1alpha1.UserStatusMuted
		m.findings[identity.Name] = &v1alpha1.Finding{
			ObjectMeta: metav1.ObjectMeta{Name: identity.Name}, Spec: spec,
			Status: v1alpha1.FindingStatus{UserStatus: v1alpha1.UserStatusMuted},
		}
	}
}

// batchesOf returns the batches of a file. Each call of the returned function gives them anew, with the results moved
// down by that many lines.
func batchesOf(t *testing.T, path string) (moved func(lines int32) []*Batch) {
	t.Helper()
	file, err := os.Open(path) //nolint:gosec // a test names its own files
	harness.Must(t, err)
	defer file.Close() //nolint:errcheck // only read from
	log, err := sarif.Parse(file, sarif.Options{})
	harness.Must(t, err)
	batches, err := Collect([]File{{Name: filepath.Base(path), Log: log}}, Choices{}, time.Now())
	harness.Must(t, err)
	return func(lines int32) []*Batch {
		out := make([]*Batch, len(batches))
		for i, b := range batches {
			copied := *b
			copied.Results = slices.Clone(b.Results)
			for i := range copied.Results {
				if l := &copied.Results[i].Location; l.Line > 0 {
					l.Line += lines
				}
			}
			out[i] = &copied
		}
		return out
	}
}

// The first import recognises all findings of an earlier version, and then nothing changes.
func TestFindingsOfAnEarlierVersionKeepNamesAndDecisions(t *testing.T) {
	for _, path := range needs.SARIF(t, "") {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".sarif"), func(t *testing.T) {
			batches := batchesOf(t, path)
			for _, moved := range []int32{0, 7} {
				m := newMemory(t)
				for _, b := range batches(0) {
					m.importEarlier(b)
				}
				before := slices.Sorted(maps.Keys(m.findings))
				m.observe()
				for scan := range 2 {
					for _, b := range batches(moved) {
						changes := m.scan(b, func(int, string) {})
						if scan == 1 && len(changes) != 0 {
							t.Errorf("moved by %d lines: the second import writes %d findings", moved, len(changes))
						}
					}
				}
				harness.Same(t, fmt.Sprintf("moved by %d lines: names", moved), before, slices.Sorted(maps.Keys(m.findings)))
				m.observe()
				for name, f := range m.findings {
					if why := findingstate.WhyStale(f); why != "" && f.Spec.Doubt == nil {
						t.Errorf("moved by %d lines: the decision about %s is stale by the upgrade: %s", moved, name, why)
					}
					if f.Spec.Closed != nil || f.Spec.Triage.UserStatus != v1alpha1.UserStatusMuted {
						t.Errorf("moved by %d lines: finding %s is closed (%v) or undecided (%s)", moved, name, f.Spec.Closed, f.Spec.Triage.UserStatus)
					}
				}
			}
		})
	}
}

// inFile returns a result with code at a location.
func inFile(path, code string, line int32) sarif.Result {
	return sarif.Result{
		RuleID: "R", Rule: &sarif.Rule{}, Severity: v1alpha1.LevelLow, Message: "do not",
		Location: sarif.Location{Path: path, Line: line, Snippet: code},
	}
}

// life is a project whose findings are followed through scans.
type life struct {
	memory
	*testing.T
	// analysis of the next scans.
	analysis string
}

func newLife(t *testing.T) *life {
	return &life{memory: *newMemory(t), T: t}
}

// scans imports a scan and returns the names of the results' findings, in their order.
func (l *life) scans(results ...sarif.Result) []string {
	names := make([]string, len(results))
	b := &Batch{Tool: "lint", Category: v1alpha1.CategoryCode, Analysis: l.analysis, Results: results}
	for i := range results {
		b.Results[i].Index = i
	}
	l.scan(b, func(index int, name string) { names[index] = name })
	return names
}

func (l *life) want(reason string, got []string, want ...string) {
	l.Helper()
	harness.Same(l, reason, want, got)
}

func (l *life) wantOpen(reason string, n int) {
	l.Helper()
	harness.Same(l, reason+": open findings", n, l.open())
}

// doubted fails the test unless the finding is in doubt for that reason, or not in doubt if it is empty.
func (l *life) doubted(reason, name string, want recognition.Doubt) {
	l.Helper()
	var got string
	if doubt := l.findings[name].Spec.Doubt; doubt != nil {
		got = doubt.Reason
	}
	harness.Same(l, reason+": in doubt", string(want), got)
}

// open returns how many findings are open.
func (l *life) open() (n int) {
	for _, f := range l.findings {
		if f.Spec.Closed == nil {
			n++
		}
	}
	return n
}

// A finding keeps its name when its file is renamed. A new result at its old place is another finding, with the same
// new name at every attempt.
func TestANameIsForLife(t *testing.T) {
	a, b := inFile("a.go", "x()", 5), inFile("b.go", "x()", 5)
	t.Run("moved, and the same again", func(t *testing.T) {
		l := newLife(t)
		first := l.scans(a)[0]
		l.want("moved", l.scans(b), first)
		again := l.scans(b, a)
		if again[0] != first || again[1] == first {
			t.Fatalf("the same again where it was: names %v, want %s and another", again, first)
		}
		lone := newLife(t)
		lone.scans(a)
		lone.scans(b)
		lone.want("another try", lone.scans(a, b), again[1], again[0])
		l.want("once more", l.scans(a, b), again[1], again[0])
		l.wantOpen("moved, and the same again", 2)
	})
	t.Run("copy", func(t *testing.T) {
		l := newLife(t)
		first := l.scans(a)[0]
		both := l.scans(b, a)
		if both[1] != first || both[0] == first {
			t.Fatalf("names %v, want the copy first under another name than %s", both, first)
		}
		l.want("the first goes, the copy stays", l.scans(b), both[0])
		l.want("and back", l.scans(a, b), first, both[0])
	})
	t.Run("swap", func(t *testing.T) {
		l := newLife(t)
		c, d := inFile("a.go", "x()", 5), inFile("b.go", "y()", 5)
		before := l.scans(c, d)
		c.Location.Path, d.Location.Path = d.Location.Path, c.Location.Path
		l.want("swapped", l.scans(c, d), before...)
		c.Location.Path, d.Location.Path = d.Location.Path, c.Location.Path
		l.want("and back", l.scans(c, d), before...)
		l.wantOpen("swap", 2)
	})
	t.Run("there and back", func(t *testing.T) {
		l := newLife(t)
		first := l.scans(a)[0]
		for range 3 {
			l.want("there", l.scans(b), first)
			l.want("back", l.scans(a), first)
		}
		harness.Same(t, "findings", 1, len(l.findings))
	})
	t.Run("gone and back elsewhere", func(t *testing.T) {
		l := newLife(t)
		first := l.scans(a)[0]
		l.scans()
		l.wantOpen("gone", 0)
		l.want("back in another file", l.scans(b), first)
		l.wantOpen("back", 1)
	})
}

// An import that is cut off at any write and repeated ends in the same state as one that was not.
func TestAnImportThatWasCutOffGivesTheSameNames(t *testing.T) {
	before := []sarif.Result{inFile("a.go", "x()", 5), inFile("b.go", "y()", 9), inFile("c.go", "z()", 1)}
	after := []sarif.Result{
		inFile("d.go", "x()", 5), inFile("a.go", "x()", 5), inFile("a.go", "x()", 50), inFile("b.go", "z()", 9), inFile("c.go", "y()", 1), inFile("c.go", "w()", 30),
	}
	whole := newLife(t)
	whole.scans(before...)
	want := whole.scans(after...)
	for cut := range len(after) + 1 {
		l := newLife(t)
		l.scans(before...)
		l.lost = func(i int) bool { return i >= cut }
		l.scans(after...)
		l.lost = nil
		l.want(fmt.Sprintf("cut off after %d writes", cut), l.scans(after...), want...)
		harness.Same(t, fmt.Sprintf("cut off after %d writes: findings", cut), slices.Sorted(maps.Keys(whole.findings)), slices.Sorted(maps.Keys(l.findings)))
	}
}

// Three results disappear and others appear, equal in all but their files: nobody can tell which moved, neither at the
// first attempt nor after an import was cut off with most new ones written. So the three are closed.
func TestAnImportThatWasCutOffMovesNothingThatIsAmbiguous(t *testing.T) {
	files := func(prefix string, n int) (out []sarif.Result) {
		for i := range n {
			out = append(out, inFile(fmt.Sprintf("src/%s-%05d.go", prefix, i), "", 7))
		}
		return out
	}
	kept, dropped, added := files("kept", 4), files("dropped", 3), files("new", 30)
	rapid.Check(t, func(r *rapid.T) {
		left := rapid.SliceOfNDistinct(rapid.IntRange(0, len(added)-1), 0, 6, rapid.ID[int]).Draw(r, "left")
		l := newLife(t)
		gone := l.scans(slices.Concat(kept, dropped)...)[len(kept):]
		l.mute()
		l.lost = func(i int) bool { return slices.Contains(left, i) }
		l.scans(slices.Concat(kept, added)...)
		l.lost = nil
		l.scans(slices.Concat(kept, added)...)
		for _, name := range gone {
			if f := l.findings[name]; f.Spec.Closed == nil {
				r.Fatalf("%s is said to have moved to %s", name, f.Spec.Details.Location.FilePath)
			}
		}
	})
}

// An earlier version stored the passwords in URIs. Without them the file is the same.
func TestAFindingKeepsItsDecisionWhenItsPathLosesAPassword(t *testing.T) {
	l := newLife(t)
	r := inFile("git+https://oauth2:t0k3n@example.com/a.git", "x()", 5)
	first := l.scans(r)[0]
	l.mute()
	r.Location.Path = "git+https://example.com/a.git"
	described := &Described{Facts: testContext(v1alpha1.CategoryCode).spec(&r), result: &r}
	certain, _ := Certain([]*Described{described}, l.there())
	l.want("in a review", certain, first)
	l.want("in a scan", l.scans(r), first)
	l.doubted("in a scan", first, "")
	harness.Same(t, "path", r.Location.Path, l.findings[first].Spec.Details.Location.FilePath)
}

// A folder of similar files is renamed, and a similar file is new. Cut off after the moves are written, the repeated
// import still keeps every decision with its finding.
func TestAnImportThatWasCutOffHasMovedWhatMoves(t *testing.T) {
	folder := func(name string) []sarif.Result {
		return []sarif.Result{inFile(name+"/1.go", "", 7), inFile(name+"/2.go", "", 7), inFile(name+"/3.go", "", 7)}
	}
	after := append(folder("b"), inFile("c/4.go", "", 7), inFile("d/5.go", "", 7))
	for cut := 3; cut <= len(after); cut++ {
		l := newLife(t)
		want := l.scans(folder("a")...)
		l.lost = func(i int) bool { return i >= cut }
		l.scans(after...)
		l.lost = nil
		l.want(fmt.Sprintf("cut off after %d writes", cut), l.scans(after...)[:len(want)], want...)
		l.wantOpen("done again", len(after))
	}
}

// An incomplete scan tells of no file that it is gone, and of none that it is new: until a complete one was imported,
// no decision moves to another file without a doubt.
func TestAnIncompleteScanConfirmsNoMove(t *testing.T) {
	hashed := inFile("a/f", "", 5)
	hashed.Fingerprints = map[string]string{"primaryLocationLineHash": "abc:1"}
	locked := func(id string) sarif.Result {
		r := inFile("a/f", "", 1)
		r.Package, r.Vulnerability = &sarif.Package{Name: id, Version: "1"}, &sarif.Vulnerability{ID: "CVE-2026-" + id}
		return r
	}
	for reason, in := range map[string][]sarif.Result{
		"fingerprint": {hashed}, "packages": {locked("1"), locked("2")}, "code": {inFile("a/f", "x()", 5), inFile("a/f", "y()", 9)},
	} {
		copied := func(path string) []sarif.Result {
			out := slices.Clone(in)
			for i := range out {
				out[i].Location.Path = path
			}
			return out
		}
		silently := func(l *life, names []string) (n int) {
			for _, name := range names {
				if f := l.findings[name]; f.Spec.Doubt == nil && f.Spec.Closed == nil && f.Spec.Details.Location.FilePath != "a/f" {
					n++
				}
			}
			return n
		}
		l := newLife(t)
		names := l.scans(in...)
		l.mute()
		l.incomplete = []string{"the tool failed"}
		l.want(reason+": the copy alone", l.scans(copied("b/f")...), names...)
		harness.Same(t, reason+": the copy alone: moved silently", 0, silently(l, names))

		for _, analysis := range []string{"", "the first"} {
			l = newLife(t)
			names = l.scans(in...)
			l.mute()
			l.incomplete = []string{"the tool failed"}
			l.scans(slices.Concat(copied("b/f"), copied("c/f"))...)
			l.incomplete, l.analysis = nil, analysis
			moved := l.scans(slices.Concat(copied("d/f"), copied("b/f"), copied("c/f"))...)
			l.want(reason+": the last of three copies", moved[:len(in)], names...)
			harness.Same(t, reason+": the last of three copies: moved silently", 0, silently(l, names))
		}

		l = newLife(t)
		names = l.scans(in...)
		l.mute()
		l.scans()
		l.incomplete = []string{"the tool failed"}
		l.want(reason+": the copy of a closed one", l.scans(copied("b/f")...), names...)
		harness.Same(t, reason+": the copy of a closed one: moved silently", 0, silently(l, names))
	}
}

// alikeAt returns results that only their lines distinguish.
func alikeAt(code string, lines []int32) []sarif.Result {
	out := make([]sarif.Result, len(lines))
	for i, line := range lines {
		out[i] = inFile("a.go", code, line)
	}
	return out
}

// Similar results moved. What an import wrote before it was cut off is right, and stays. The rest may be paired
// differently, because the other moves that distinguished it are already done.
func TestAnImportThatWasCutOffPermutesNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		code := rapid.SampledFrom([]string{"x()", ""}).Draw(r, "code")
		lines := rapid.SliceOfNDistinct(rapid.Int32Range(1, 60), 1, 6, rapid.ID[int32])
		before, after := alikeAt(code, lines.Draw(r, "before")), alikeAt(code, lines.Draw(r, "after"))
		written := rapid.SliceOfN(rapid.Bool(), 12, 12).Draw(r, "written")
		whole := newLife(t)
		whole.scans(before...)
		want := whole.scans(after...)
		l := newLife(t)
		l.scans(before...)
		l.lost = func(i int) bool { return !written[i] }
		l.scans(after...)
		l.lost = nil
		right := map[string]bool{}
		for name, f := range l.findings {
			right[name] = f.Spec.Scan.ScanID == "s-2" && f.Spec.Closed == nil
		}
		for i, name := range l.scans(after...) {
			if right[want[i]] && name != want[i] {
				r.Fatalf("result %d was written as %s and is %s", i, want[i], name)
			}
		}
	})
}

func TestBecauseSaysWhatChanged(t *testing.T) {
	was := recognition.Evidence{Path: "a.go", Line: 5, Message: "m", Snippet: "x", Version: "1"}
	for name, tc := range map[string]struct {
		match match
		want  string
	}{
		"first rung":           {match{rung: recognition.Unchanged, is: was}, ""},
		"first rung, in doubt": {match{rung: recognition.Unchanged, is: was, doubt: recognition.DoubtCount}, "unchanged; in doubt: several results alike, and not as many as before"},
		"moved":                {match{rung: recognition.Moved, is: recognition.Evidence{Path: "b.go", Line: 5, Message: "m", Snippet: "x", Version: "1"}}, "recognised by moved: moved from a.go"},
		"much": {match{rung: recognition.Line, doubt: recognition.DoubtLine, is: recognition.Evidence{Path: "a.go", Line: 6, Message: "n", Snippet: "y", Version: "2"}},
			"recognised by nearest line: line 5 before, version 1 before, message changed, code changed; in doubt: line moved, and no code to compare"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.match.was, tc.match.before = was, &v1alpha1.Finding{}
			harness.Same(t, "because", tc.want, tc.match.because())
		})
	}
}

// Only a finding with a decision is put in doubt. The doubt stays while the decision is withdrawn: an undo may restore it.
func TestADoubtIsKeptWithTheDecision(t *testing.T) {
	l := newLife(t)
	result := inFile("a.go", "", 5)
	name := l.scans(result)[0]
	result.Location.Line = 90
	l.scans(result)
	l.doubted("nobody has decided", name, "")
	l.findings[name].Spec.Triage = v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen, By: "ann", Comments: "see #4"}
	l.observe()
	result.Location.Line = 180
	l.scans(result)
	l.doubted("somebody has commented", name, "")
	l.mute()
	result.Location.Line = 300
	l.scans(result)
	doubt := l.findings[name].Spec.Doubt
	if doubt == nil || doubt.Reason != string(recognition.DoubtLine) || doubt.ScanID != "s-4" {
		t.Fatalf("doubt %+v, want that of the fourth scan", doubt)
	}
	l.scans(result)
	harness.Same(t, "doubt after a scan that changes nothing", doubt, l.findings[name].Spec.Doubt)
	muted := l.findings[name].Spec.Triage
	l.findings[name].Spec.Triage = v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen, By: "operation/undo"}
	l.observe()
	result.Related = []sarif.Location{{Path: "b.go", Line: 1}}
	l.scans(result)
	harness.Same(t, "doubt after a certain change while nobody decides", doubt, l.findings[name].Spec.Doubt)
	result.Location.Line = 400
	l.scans(result)
	harness.Same(t, "scan of the doubt after another move while nobody decides", "s-7", l.findings[name].Spec.Doubt.ScanID)
	l.findings[name].Spec.Triage = muted
	l.observe()
	harness.Same(t, "why the restored decision is stale", "in doubt: "+doubt.Reason, findingstate.WhyStale(l.findings[name]))
	l.lost = func(int) bool { return false } // no scan completes
	for _, line := range []int32{500, 900} {
		result.Location.Line = line
		l.scans(result)
		if d := l.findings[name].Spec.Doubt; d == nil || d.ScanID != fmt.Sprintf("s-%d", l.scanned) {
			t.Errorf("another move is another doubt, also in the same words; scan %d: %+v", l.scanned, d)
		}
	}
}

// Equal code may have been written anew, for another purpose. In a review the branch does not have the fix yet.
func TestADecisionAboutAClosedFindingThatIsBackAtAnotherLineIsInDoubt(t *testing.T) {
	hashed := inFile("a.go", "", 5)
	hashed.Fingerprints = map[string]string{"primaryLocationLineHash": "abc:1"}
	for reason, result := range map[string]sarif.Result{"code": inFile("a.go", "x()", 5), "fingerprint": hashed} {
		l := newLife(t)
		name := l.scans(result)[0]
		l.mute()
		l.scans()
		result.Location.Line = 300
		out := &Compared{Known: ResultSet{}}
		batch := &Batch{Tool: "lint", Category: v1alpha1.CategoryCode, Results: []sarif.Result{result}}
		comparison := toolComparison{repository: &v1alpha1.Repository{}, coverage: coverage{batches: []*Batch{batch}},
			past: l.memory.scans["lint"], findings: l.there(), out: out}
		harness.Must(t, comparison.compare(t.Context()))
		harness.Same(t, reason+": known in a review, in doubt", []int{1, 0}, []int{len(out.Known), out.InDoubt})
		l.want(reason, l.scans(result), name)
		l.doubted(reason, name, recognition.DoubtBack)
	}
}

// An undo restores the decision, or its earlier end, on its old basis.
func TestADoubtAboutADecisionThatHasEndedOrWasWithdrawnIsStored(t *testing.T) {
	here, there, copied := inFile("a.go", "x()", 5), inFile("a.go", "x()", 300), inFile("b.go", "x()", 5)
	other := inFile("a.go", "y()", 90)
	long := v1alpha1.NewTime(time.Now().Add(-time.Hour))
	withdrawn := v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusOpen, By: "operation/undo"}
	ended := v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, By: "operation/end", ExpiresAt: &long}
	for reason, tc := range map[string]struct {
		scans [][]sarif.Result
		doubt recognition.Doubt
	}{
		"found in another file":            {[][]sarif.Result{{copied, other}}, recognition.DoubtElsewhere},
		"closed, and back at another line": {[][]sarif.Result{{other}, {there, other}}, recognition.DoubtBack},
		"moved within its file":            {[][]sarif.Result{{there, other}}, ""},
	} {
		for _, meanwhile := range []v1alpha1.FindingTriage{withdrawn, ended} {
			l := newLife(t)
			name := l.scans(here, other)[0]
			l.mute()
			muted := l.findings[name].Spec.Triage
			l.findings[name].Spec.Triage = meanwhile
			for _, results := range tc.scans {
				l.observe()
				l.scans(results...)
			}
			l.findings[name].Spec.Triage = muted
			l.observe()
			after := reason + ", after " + meanwhile.By
			l.doubted(after, name, tc.doubt)
			harness.Same(t, after+": the restored decision is stale", tc.doubt != "", findingstate.Stale(l.findings[name]))
		}
	}
}

// What a failed scan added is known like everything else once the scan was repeated: then it is no rival for a file that
// is renamed.
func TestARepeatedScanIsFinished(t *testing.T) {
	a, b, c := inFile("a.go", "", 5), inFile("b.go", "", 5), inFile("c.go", "", 5)
	for reason, incomplete := range map[string][]string{"a complete scan": nil, "an incomplete scan": {"the tool failed"}} {
		l := newLife(t)
		l.scans(inFile("d.go", "y()", 9))
		l.lost = func(i int) bool { return i >= 2 } // it closes nothing
		names := l.scans(a, c)
		l.lost, l.incomplete = nil, incomplete
		l.want(reason+" repeats it", l.scans(a, c), names...)
		l.mute()
		l.incomplete = nil
		l.want(reason+" repeated it, then renamed", l.scans(b, c), names...)
	}
}

// What an import closed before it was cut off is no rival either: that import had already written all its results.
func TestWhatIsClosedIsNoRival(t *testing.T) {
	l := newLife(t)
	a, b, c := inFile("a.go", "", 5), inFile("b.go", "", 5), inFile("c.go", "", 5)
	d := l.scans(inFile("d.go", "y()", 9))[0]
	l.lost = func(i int) bool { return i >= 2 } // it closes nothing
	names := l.scans(a, c)
	l.mute()
	both := slices.Sorted(slices.Values([]string{names[1], d}))
	l.lost = func(i int) bool { return both[i] == d }
	l.scans(a)
	if l.findings[names[1]].Spec.Closed == nil || l.findings[d].Spec.Closed != nil {
		t.Fatal("the import does not close the one and lose the other")
	}
	l.lost = nil
	l.want("renamed, and the closed one is back", l.scans(b, c), names...)
}

// No scan repeats an incomplete one. What that one added is known like everything else.
func TestWhatAnIncompleteScanWroteIsKnown(t *testing.T) {
	failed := []string{"the tool failed"}
	for reason, firstScan := range map[string][]int32{"all at once": nil, "one was known": {5}} {
		for _, incomplete := range [][]string{nil, failed} {
			l := newLife(t)
			l.incomplete = incomplete
			l.scans(alikeAt("x()", firstScan)...)
			l.incomplete = failed
			names := l.scans(alikeAt("x()", []int32{5, 9, 13})...)
			l.incomplete = nil
			l.want("four lines more, "+reason, l.scans(alikeAt("x()", []int32{9, 13, 17})...), names...)
		}
	}

	// The one that moves takes the place of one that is gone, and that nothing closes.
	for moved, lines := range map[int32][]int32{9: {5, 9, 30}, 5: {9, 5, 34}} {
		for _, incomplete := range [][]string{nil, failed} {
			l := newLife(t)
			l.incomplete = incomplete
			names := l.scans(alikeAt("x()", lines)...)
			l.incomplete = failed
			again := alikeAt("x()", []int32{moved, lines[2] + moved - lines[0]})
			l.want("one is gone", l.scans(again...), names[0], names[2])
			l.want("one is gone, and the scan is repeated", l.scans(again...), names[0], names[2])
			l.incomplete = nil
			l.want("one is gone, and a scan completes", l.scans(again...), names[0], names[2])
		}
		for _, incomplete := range [][]string{nil, failed} {
			l := newLife(t)
			l.incomplete = failed
			names := l.scans(alikeAt("x()", lines)...)
			l.scans(alikeAt("x()", []int32{moved, lines[2] + moved - lines[0]})...)
			l.incomplete = incomplete
			shifted := alikeAt("x()", []int32{moved + 1, lines[2] + moved - lines[0] + 1})
			l.want("one is gone, and the others move again", l.scans(shifted...), names[0], names[2])
		}
	}

	l := newLife(t)
	l.incomplete = failed
	names := l.scans(inFile("a.go", "", 5), inFile("c.go", "", 5))
	l.mute()
	l.incomplete = nil
	l.want("renamed", l.scans(inFile("b.go", "", 5), inFile("c.go", "", 5)), names...)
	l.doubted("renamed", names[0], recognition.DoubtIncomplete)
}

// A rule that the tool renamed lists its former ids. An id that several rules list, or that is still reported, renames
// none.
func TestARuleMayBeRenamed(t *testing.T) {
	under := func(id string, line int32, former ...string) sarif.Result {
		r := inFile("a.go", "x()", line)
		r.RuleID, r.Rule = id, &sarif.Rule{ID: id, Formerly: former}
		return r
	}
	sub := under("NEW", 5, "OLD")
	sub.RuleID = "NEW/sub"
	for reason, tc := range map[string]struct {
		results []sarif.Result
		keeps   bool
	}{
		"renamed":              {[]sarif.Result{under("NEW", 5, "OLDER", "OLD")}, true},
		"renamed, and another": {[]sarif.Result{under("NEW", 5, "OLD"), under("NEW", 9, "OLD"), under("OTHER", 5, "OLDER")}, true},
		"another rule":         {[]sarif.Result{under("NEW", 5)}, false},
		"part of a rule":       {[]sarif.Result{sub}, false},
		"divided":              {[]sarif.Result{under("NEW", 5, "OLD"), under("OTHER", 5, "OLD")}, false},
		"divided, in a group":  {[]sarif.Result{under("NEW", 5, "OLDER", "OLD"), under("OTHER", 5, "OLDER", "OLD"), under("NEW", 9, "OLD")}, false},
		"still reported":       {[]sarif.Result{under("NEW", 5, "OLD"), under("OLD", 50)}, false},
	} {
		l := newLife(t)
		first := l.scans(under("OLD", 5))[0]
		l.mute()
		if name := l.scans(tc.results...)[0]; (name == first) != tc.keeps {
			t.Errorf("%s: the result is %s; is it %s: want %v", reason, name, first, tc.keeps)
		}
		if tc.keeps {
			l.doubted(reason, first, "")
			harness.Same(t, reason+": rule", "NEW", l.findings[first].Spec.RuleID)
		}
	}
	for reason, about := range map[string]func(r *sarif.Result){
		"a licence of a package":            func(r *sarif.Result) { r.Package = &sarif.Package{Name: "denque", Version: "1"} },
		"a vulnerability without a package": func(r *sarif.Result) { r.Vulnerability = &sarif.Vulnerability{ID: "CVE-2026-1"} },
	} {
		l := newLife(t)
		before, after := under("OLD", 5), under("NEW", 5, "OLD")
		about(&before)
		about(&after)
		names := l.scans(before)
		l.want(reason, l.scans(after), names...)
	}
}

// Results of one message and place may differ only in the object, the package or the request that they are about.
func TestResultsAboutDifferentThingsAreDifferent(t *testing.T) {
	target := func(name string) sarif.Result {
		r := inFile("main.bicep", "", 1)
		r.Logical = []sarif.Logical{{Kind: "object", Name: name}}
		return r
	}
	binary := func(message, detail string) sarif.Result {
		r := inFile("app.dll", "", 0)
		r.Message, r.Detail = message, detail
		return r
	}
	request := func(method string) sarif.Result {
		r := inFile("https://shop.example/login", "", 0)
		r.Endpoints = []sarif.Endpoint{{Method: method, Path: "/login"}}
		return r
	}
	version := func(purl, name, version string) sarif.Result {
		r := inFile("package-lock.json", "", 1)
		r.Package = &sarif.Package{PURL: purl + "@" + version, Name: name, Version: version}
		return r
	}
	for tool, two := range map[string][2]sarif.Result{
		"PSRule":              {target("Storage/logs"), target("Storage/cache")},
		"packages":            {version("pkg:npm/a", "a", "1"), version("pkg:npm/b", "b", "1")},
		"packages' versions":  {version("pkg:npm/a", "a", "1"), version("pkg:npm/a", "a", "2")},
		"packages' ecosystem": {version("pkg:npm/a", "a", "1"), version("pkg:pypi/a", "a", "1")},
		"ZAP":                 {request("GET"), request("POST")},
		"binary":              {binary("m", "100"), binary("m", "900")},
		"binary, no message":  {binary("", "100"), binary("", "900")},
	} {
		l := newLife(t)
		first := l.scans(two[0])[0]
		l.mute()
		names := l.scans(two[0], two[1])
		harness.Same(t, tool+": unchanged", 1, l.plan.unchanged)
		harness.Same(t, tool+": written", 1, len(l.plan.changes))
		l.wantOpen(tool+": both", 2)
		if !slices.Contains(names, first) || l.findings[first].Spec.Doubt != nil {
			t.Errorf("%s: %v are known, with the doubt %v; want the first, %s, without", tool, names, l.findings[first].Spec.Doubt, first)
		}
		again := l.scans(two[1], two[0])
		l.want(tool+": in another order", slices.Sorted(slices.Values(again)), slices.Sorted(slices.Values(names))...)
		l.scans(two[1])
		l.wantOpen(tool+": one is repaired", 1)
		if strings.HasPrefix(tool, "binary") {
			harness.Same(t, tool+": one is repaired, in doubt", 1, l.plan.doubtful)
		}
	}
	l := newLife(t)
	names := l.scans(request("GET"), request("POST"))
	l.want("ZAP, in another order", l.scans(request("POST"), request("GET")), names[1], names[0])
	l.want("ZAP, the first is repaired", l.scans(request("POST")), names[1])
}

// The names of findings and issues depend on the order of digests.
func TestDigestsNeverChange(t *testing.T) {
	r := inFile("a.go", "x()", 5)
	r.Related, r.CWEs, r.Level = []sarif.Location{{Path: "b.go", Line: 1}}, []string{"CWE-79"}, "error"
	r.Detail = "no part of either"
	harness.Same(t, "evidence", "tlmaq6hn.b6rams6f", evidenceText(&r, v1alpha1.CategoryCode))
	advice := ". Names depend on it: a new field of Location or Fix needs `json:\",omitempty\"`"
	harness.Same(t, "digest"+advice,
		"bda514eca6029aad129ff4736a9632e4ed1af4b18786b5085457879d8278eebe", fmt.Sprintf("%x", digest(&r)))
	r.Fixes = []sarif.Fix{{Description: "Bind it.", Inserted: []string{"y()"}}}
	harness.Same(t, "digest with a fix"+advice,
		"06bdede8e14fabdc4e1c909cbc9d6cd3b40b0ae55c1ddfb5909bf6e569fb647b", fmt.Sprintf("%x", digest(&r)))
}
