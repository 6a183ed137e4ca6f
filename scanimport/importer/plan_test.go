package importer

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/fingerprints"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestGuardClosing(t *testing.T) {
	for name, tc := range map[string]struct {
		reason        string
		open, toClose int
		refused       bool
	}{
		"few, all":        {"few findings come and go", 19, 19, false},
		"twenty, half":    {"half is not more than half", 20, 10, false},
		"twenty, more":    {"the smallest case", 20, 11, true},
		"many, all":       {"the scanner was misconfigured", 5000, 5000, true},
		"odd, below half": {"no rounding up", 21, 10, false},
		"odd, above half": {"no rounding down", 21, 11, true},
		"none":            {"nothing to lose", 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := guardClosing(tc.open, tc.toClose, false); (err != nil) != tc.refused {
				t.Errorf("guardClosing(%d, %d) = %v, want refused %v: %s", tc.open, tc.toClose, err, tc.refused, tc.reason)
			} else if err != nil {
				harness.ErrorContains(t, "the parameter of an upload", err, "use --force (over REST force=true)")
			}
		})
	}
	if err := guardClosing(20, 11, true); err == nil || strings.Contains(err.Error(), "dry") {
		t.Errorf("a dry run is refused with %v, want an error that advises no further dry run", err)
	}
}

func TestGuardAnalysis(t *testing.T) {
	at := func(analysis string, second int64) pastScan {
		return pastScan{series: series{v1alpha1.CategoryCode, analysis}, startedAt: time.Unix(second, 0), succeeded: true}
	}
	for name, tc := range map[string]struct {
		reason  string
		past    history
		refused bool
	}{
		"new":       {"it may be a new name", history{"s-1": at("backend", 1)}, true},
		"abandoned": {"it may be an old name again", history{"s-1": at("frontend", 1), "s-2": at("backend", 2), "s-3": at("backend", 3)}, true},
		"beside":    {"both have been imported for long", history{"s-1": at("frontend", 1), "s-2": at("backend", 2), "s-3": at("frontend", 3), "s-4": at("backend", 4)}, false},
		"a failure": {"what failed was not imported", history{"s-1": at("backend", 1), "s-2": {series: series{v1alpha1.CategoryCode, "frontend"}, startedAt: time.Unix(2, 0)}}, true},
	} {
		p := &plan{elsewhere: map[string]overlap{"backend": {1, true}}}
		_, err := guardAnalysis(&Batch{Category: v1alpha1.CategoryCode, Analysis: "frontend"}, tc.past, p, 1, false)
		if (err != nil) != tc.refused {
			t.Errorf("%s: %v, want refused %t: %s", name, err, tc.refused, tc.reason)
		}
	}

	of := func(rule, analysis string) v1alpha1.FindingSpec {
		return v1alpha1.FindingSpec{RuleID: rule, Analysis: analysis}
	}
	var p plan
	for _, rule := range []string{"R1", "R2", "R3"} {
		p.changes = append(p.changes, change{action: ActionCreate, spec: of(rule, "frontend")})
	}
	past := history{"s-1": at("beside", 1), "s-2": at("frontend", 2), "s-3": at("other", 3), "s-4": at("another", 4)}
	in := func(analysis string, status v1alpha1.UserStatus, rules ...string) (out []v1alpha1.Finding) {
		for _, rule := range rules {
			f := v1alpha1.Finding{Spec: of(rule, analysis)}
			f.Spec.Triage.UserStatus = status
			out = append(out, f)
		}
		return out
	}
	for _, tc := range []struct {
		reason  string
		others  []v1alpha1.Finding
		refused bool
		// warned if it is not refused, or chosen by the user, or forced.
		warned bool
	}{
		{"the decision is in the analysis beside", append(in("beside", v1alpha1.UserStatusMuted, "R1"), in("other", "", "R2", "R3")...), false, true},
		{"the decision is in the other", append(in("beside", "", "R1"), in("other", v1alpha1.UserStatusMuted, "R2", "R3")...), true, true},
		{"both have them, the one beside first", append(in("beside", "", "R1", "R2"), in("other", v1alpha1.UserStatusMuted, "R1", "R2", "R3")...), true, true},
		{"both have them, the other first", append(in("other", v1alpha1.UserStatusMuted, "R1", "R2", "R3"), in("beside", "", "R1", "R2")...), true, true},
		{"earlier wrong names have some, too", slices.Concat(in("another", "", "R1", "R2"), in("other", "", "R1", "R2", "R3"), in("third", "", "R1", "R2")), false, true},
		{"an earlier wrong name has all, too", slices.Concat(in("another", "", "R1", "R2", "R3"), in("other", "", "R1", "R2", "R3")), false, true},
		{"an earlier wrong name has more, but no decision", slices.Concat(in("another", "", "R1", "R2", "R3"), in("other", v1alpha1.UserStatusMuted, "R1", "R2")), true, true},
		{"as many alike count as are new", in("other", v1alpha1.UserStatusMuted, "R1", "R1"), false, false},
		{"the one beside has them", in("beside", v1alpha1.UserStatusMuted, "R1", "R2", "R3"), false, false},
	} {
		p.knownElsewhere("frontend", &known{others: tc.others})
		// Results without a finding are known in no analysis.
		p.unseen, p.unreadable = make([]*sarif.Result, 4), make([]*sarif.Result, 1)
		for _, given := range []struct{ chosen, force bool }{{}, {chosen: true}, {force: true}} {
			b := &Batch{Category: v1alpha1.CategoryCode, Analysis: "frontend", ChosenAnalysis: given.chosen}
			refused := tc.refused && !given.chosen && !given.force
			warning, err := guardAnalysis(b, past, &p, 8, given.force)
			if (err != nil) != refused || strings.Contains(warning, `--analysis "other"`) != (tc.warned && !refused) {
				t.Errorf("%s, %+v: %v, %q; want refused %t, warned %t", tc.reason, given, err, warning, refused, tc.warned)
			}
		}
	}
	p.elsewhere = map[string]overlap{"other": {3, true}}
	warning, _ := guardAnalysis(&Batch{Analysis: "frontend", ChosenAnalysis: true}, past, &p, 9, false)
	harness.Same(t, "the warning if one result is a finding of this analysis", "", warning)
}

// An earlier version did not store that code is masked, and an unchanged finding keeps its evidence.
func TestMaskedCodeStoredByAnEarlierVersionIsKnownInAnotherAnalysis(t *testing.T) {
	of := func(analysis, evidence string) v1alpha1.FindingSpec {
		return v1alpha1.FindingSpec{RuleID: "R", Analysis: analysis, Evidence: evidence}
	}
	p := plan{changes: []change{{action: ActionCreate, spec: of("frontend", "message.code..5..masked")}}}
	p.knownElsewhere("frontend", &known{others: []v1alpha1.Finding{{Spec: of("backend", "message.code..5")}}})
	harness.Same(t, "results known in the other analysis", 1, p.elsewhere["backend"].n)
}

func TestGuardRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		reason             string
		refused, unchanged int
		fails              bool
	}{
		"none":                 {"nothing had to be written", 0, 0, false},
		"the only result":      {"it may be invalid", 1, 0, false},
		"several, all results": {"nothing of the scan is stored", 2, 0, true},
		"many, some unchanged": {"findings like the unchanged ones can be stored", 20, 1, false},
	} {
		if err := guardRefusals(tc.refused, tc.unchanged, errors.New("a freeze")); (err != nil) != tc.fails {
			t.Errorf("%s: %v, want an error %t, because %s", name, err, tc.fails, tc.reason)
		}
	}
}

func TestGuardFolder(t *testing.T) {
	at := func(path string, closed bool) *v1alpha1.Finding {
		f := &v1alpha1.Finding{}
		f.Spec.Details.Location = &v1alpha1.FileLocation{FilePath: path}
		if closed {
			f.Spec.Closed = &v1alpha1.FindingClosure{}
		}
		return f
	}
	muted := at("services/api/a.go", true)
	muted.Spec.Triage = v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted}
	for name, tc := range map[string]struct {
		outside string
		change  change
		refused bool
	}{
		"closes one in the folder":           {"services/api", change{action: ActionClose, before: at("services/api/a.go", false)}, true},
		"moves one out of the folder":        {"services/api", change{action: ActionUpdate, before: at("services/api/a.go", false)}, true},
		"paths are relative to the folder":   {"services/api", change{action: ActionClose, before: at("a.go", false)}, false},
		"closes one in a folder named alike": {"services/api", change{action: ActionClose, before: at("services/api2/a.go", false)}, false},
		"reopens one":                        {"services/api", change{action: ActionReopen, before: at("services/api/a.go", true)}, false},
		"reopens a decided one elsewhere":    {"services/api", change{action: ActionReopen, before: muted}, true},
		"only gives one the tool's new name": {"services/api", change{action: ActionRename, before: at("services/api/a.go", false)}, false},
		"creates one":                        {"services/api", change{action: ActionCreate}, false},
		"some file is in the folder":         {"", change{action: ActionClose, before: at("services/api/a.go", false)}, false},
	} {
		if err := guardFolder("api", tc.outside, &plan{changes: []change{tc.change}}); (err != nil) != tc.refused {
			t.Errorf("%s: %v, want refused %t", name, err, tc.refused)
		}
		for path, allows := range map[string]bool{"tools/x.py": true, "": false} {
			for _, action := range []Action{ActionUpdate, ActionKeep} {
				var p plan
				p.add(tc.change)
				p.add(change{action: action, before: at(path, false)})
				if err := guardFolder("api", tc.outside, &p); (err != nil) != (tc.refused && !allows) {
					t.Errorf("%s, beside a known result in the file %q (%s): %v", name, path, action, err)
				}
			}
		}
	}
}

func TestWhatCountsAsAChange(t *testing.T) {
	c := testContext(v1alpha1.CategoryCode)
	base := func() v1alpha1.FindingSpec {
		return c.spec(&sarif.Result{
			RuleID: "R", Severity: v1alpha1.LevelHigh, Message: "m", Rule: &sarif.Rule{},
			Location: sarif.Location{Path: "a.go", Line: 7, Snippet: "x()"},
			Related:  []sarif.Location{{Path: "b.go", Line: 1}},
		})
	}
	later := v1alpha1.NewTime(c.startedAt.Add(time.Hour))
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.FindingSpec)
		same   bool
	}{
		"nothing": {"the same is the same", func(*v1alpha1.FindingSpec) {}, true},
		"commit":  {"every scan has another", func(s *v1alpha1.FindingSpec) { s.CommitHash = "x" }, true},
		"permalinks": {"they hold the commit", func(s *v1alpha1.FindingSpec) {
			s.Details.Location.URL, s.Details.SupportingFiles[0].URL = "x", "y"
		}, true},
		"scan": {"it is that of the last change", func(s *v1alpha1.FindingSpec) {
			s.Scan = &v1alpha1.FindingScan{ScanID: "x", AnalyzedAt: &later}
		}, true},
		"detected":        {"it is of the first scan", func(s *v1alpha1.FindingSpec) { s.DetectedAt = &later }, true},
		"triage":          {"it is the people's", func(s *v1alpha1.FindingSpec) { s.Triage.UserStatus = v1alpha1.UserStatusMuted }, true},
		"another's facts": {"no import could settle it", func(s *v1alpha1.FindingSpec) { s.Details.ExploitFeasibility = v1alpha1.EffortEasy }, true},
		"empty list":      {"JSON does not tell it from none", func(s *v1alpha1.FindingSpec) { s.Fingerprints = []v1alpha1.Fingerprint{} }, true},
		"severity":        {"a fact", func(s *v1alpha1.FindingSpec) { s.Details.Severity = v1alpha1.LevelLow }, false},
		"line":            {"a fact", func(s *v1alpha1.FindingSpec) { s.Details.Location.LineNumber++ }, false},
		"description":     {"a fact", func(s *v1alpha1.FindingSpec) { s.Details.Description += "." }, false},
		"code":            {"a fact", func(s *v1alpha1.FindingSpec) { s.Details.Code = "y()" }, false},
		"supporting file": {"a fact", func(s *v1alpha1.FindingSpec) { s.Details.SupportingFiles[0].FilePath = "c.go" }, false},
		"no location":     {"a fact", func(s *v1alpha1.FindingSpec) { s.Details.Location = nil }, false},
		"suppression": {"a fact", func(s *v1alpha1.FindingSpec) {
			s.Suppression = &v1alpha1.FindingSuppression{Kind: v1alpha1.SuppressionInSource}
		}, false},
		"class": {"a fact", func(s *v1alpha1.FindingSpec) { s.Class = "CWE-1" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := base(), base()
			tc.change(&b)
			harness.Same(t, tc.reason, tc.same, sameFacts(&a, &b))
		})
	}
}

// After any history of scans the open findings are those of the last scan, each once, and importing that scan again
// changes nothing.
func TestEveryHistoryConverges(t *testing.T) {
	results := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sarif.Result {
		r := sarif.Result{
			RuleID:   rapid.SampledFrom([]string{"R", "S"}).Draw(t, "rule"),
			Rule:     &sarif.Rule{},
			Severity: v1alpha1.LevelLow,
			Message:  rapid.SampledFrom([]string{"m", "n"}).Draw(t, "message"),
			Detail:   rapid.SampledFrom([]string{"", "100"}).Draw(t, "detail"),
			Location: sarif.Location{Path: "a.go", Line: rapid.Int32Range(1, 3).Draw(t, "line"), Column: rapid.Int32Range(1, 2).Draw(t, "column")},
		}
		if rapid.Bool().Draw(t, "hash") {
			r.Fingerprints = map[string]string{"primaryLocationLineHash": "h"}
		}
		return r
	}), 0, 6)
	rapid.Check(t, func(r *rapid.T) {
		l := newLife(t)
		for n, results := range rapid.SliceOfN(results, 1, 5).Draw(r, "scans") {
			batch := func() *Batch {
				return &Batch{Tool: "lint", Category: v1alpha1.CategoryCode, Results: slices.Clone(results)}
			}
			first := l.scan(batch(), func(int, string) {})
			reported, duplicates, _ := report(t.Context(), testContext(v1alpha1.CategoryCode), batch())
			if open := l.open(); open != len(reported) || len(reported)+len(duplicates) != len(results) {
				r.Fatalf("scan %d: %d open findings, %d results of which %d twice", n, open, len(results), len(duplicates))
			}
			if again := l.scan(batch(), func(int, string) {}); len(again) != 0 {
				r.Fatalf("scan %d: a second import writes %v (the first %v)", n, actions(again), actions(first))
			}
		}
	})
}

// Results with equal evidence are compared with many findings, of which each is encoded once.
func TestEachFindingIsEncodedOnce(t *testing.T) {
	c := testContext(v1alpha1.CategoryCode)
	spec := c.spec(&sarif.Result{RuleID: "R", Rule: &sarif.Rule{}, Message: "m", Severity: v1alpha1.LevelLow})
	known := *spec.DeepCopy()
	known.Tool, known.Analysis = "renamed", "nightly"
	other := *spec.DeepCopy()
	other.Details.Severity = v1alpha1.LevelHigh
	ofResult, ofKnown := factsOf([]reported{{spec: spec}}, []v1alpha1.Finding{{Spec: known}, {Spec: other}})
	if ofResult(0) != ofKnown(0) || ofResult(0) == ofKnown(1) {
		t.Errorf("the first says the same: %t, want true; the second: %t, want false", ofResult(0) == ofKnown(0), ofResult(0) == ofKnown(1))
	}
	if n := testing.AllocsPerRun(10, func() { ofResult(0); ofKnown(0); ofKnown(1) }); n > 0 {
		t.Errorf("a second comparison allocates %v times", n)
	}
}

func actions(changes []change) []string {
	var out []string
	for _, ch := range changes {
		out = append(out, string(ch.action)+" "+ch.name)
	}
	return out
}

// Two jobs may report two names of one tool: neither renames what belongs to the other.
func TestTwoNamesOfAToolInTwoAnalysesConverge(t *testing.T) {
	result := func(rule string) []sarif.Result {
		return []sarif.Result{{RuleID: rule, Rule: &sarif.Rule{}, Message: "m", Severity: v1alpha1.LevelLow, Location: sarif.Location{Path: "a.go", Line: 1}}}
	}
	cluster := map[string]v1alpha1.Finding{}
	imports := func(tool, analysis string, results []sarif.Result) []string {
		c := testContext(v1alpha1.CategoryCode)
		c.tool, c.analysis = tool, analysis
		k := &known{}
		for _, f := range cluster {
			if f.Spec.Analysis == analysis || f.Spec.Analysis == "" {
				k.findings = append(k.findings, f)
			} else {
				k.others = append(k.others, f)
			}
		}
		batch := &Batch{Tool: tool, Results: results}
		reported, _, _ := report(t.Context(), c, batch)
		p := diff(c, batch, reported, k)
		for _, ch := range p.changes {
			cluster[ch.name] = v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: ch.name}, Spec: ch.spec}
		}
		return actions(p.changes)
	}
	imports("semgrep", "", result("gone")) // before analyses were told apart
	for i := range 4 {
		oss, pro := imports("Semgrep OSS", "push", result("R")), imports("Semgrep PRO", "nightly", result("S"))
		if i > 0 && len(oss)+len(pro) > 0 {
			t.Errorf("round %d changes %v and %v", i, oss, pro)
		}
	}
}

// The triage is never sent, even for a change of a finding that has one.
func TestNoChangeCarriesTriage(t *testing.T) {
	c := testContext(v1alpha1.CategoryCode)
	result := sarif.Result{RuleID: "R", Rule: &sarif.Rule{}, Message: "m", Severity: v1alpha1.LevelLow, Location: sarif.Location{Path: "a.go", Line: 1}}
	batch := &Batch{Results: []sarif.Result{result}}
	reported, _, _ := report(t.Context(), c, batch)
	name := batch.identities(c.scope())[0].Name
	there := func(change func(*v1alpha1.FindingSpec)) []v1alpha1.Finding {
		f := v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *reported[0].spec.DeepCopy()}
		f.Spec.Triage = v1alpha1.FindingTriage{UserStatus: v1alpha1.UserStatusMuted, Comments: "c", By: "me"}
		change(&f.Spec)
		return []v1alpha1.Finding{f}
	}
	got := map[Action]bool{}
	for _, p := range []plan{
		diff(c, batch, reported, &known{}),
		diff(c, batch, reported, &known{candidates: candidates{findings: there(func(s *v1alpha1.FindingSpec) { s.Class = "x" })}}),
		diff(c, batch, reported, &known{candidates: candidates{findings: there(func(s *v1alpha1.FindingSpec) { s.Closed = &v1alpha1.FindingClosure{} })}}),
		diff(c, batch, nil, &known{candidates: candidates{findings: there(func(*v1alpha1.FindingSpec) {})}}),
	} {
		for _, ch := range p.changes {
			got[ch.action] = true
			harness.Same(t, string(ch.action)+" sends triage", v1alpha1.FindingTriage{}, ch.spec.Triage)
		}
	}
	if len(got) != 4 {
		t.Errorf("actions tried: %v, want all four", got)
	}
}

// The jobs of an upload keep their plans until all of them are written.
func TestAPlanKeepsOnlyTheFindingsThatItChanges(t *testing.T) {
	c := testContext(v1alpha1.CategoryCode)
	b := &Batch{Tool: c.tool, Category: c.category, Results: manyResults(3)}
	var list []v1alpha1.Finding
	for _, ch := range compareAll(c, b, nil).changes {
		list = append(list, v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{Name: ch.name}, Spec: ch.spec})
	}
	unchanged := slices.IndexFunc(list, func(f v1alpha1.Finding) bool { return f.Spec.RuleID == b.Results[0].RuleID })
	kept := weak.Make(&list[unchanged])
	b.Results = b.Results[:2]
	b.Results[1].Message = "The message has changed."
	p := compareAll(c, b, list)
	harness.Heap()
	harness.Same(t, "the unchanged finding is in memory", false, kept.Value() != nil)
	var actions []Action
	for _, ch := range p.changes {
		actions = append(actions, ch.action)
	}
	slices.Sort(actions)
	harness.Same(t, "actions", []Action{ActionClose, ActionUpdate}, actions)
}

// The texts of a rule become part of the texts of each of its results.
func TestTheTextsOfFindingsAreBoundedByTheirFile(t *testing.T) {
	long := &sarif.Rule{ID: "R", FullDescription: strings.Repeat("d", maxDescription), Help: strings.Repeat("h", maxRemediation+1)}
	differs := func(message, line bool) []sarif.Result {
		out := make([]sarif.Result, 2_200)
		for i := range out {
			out[i] = sarif.Result{RuleID: "R", Rule: long, Message: "m", Severity: v1alpha1.LevelLow, Location: sarif.Location{Path: "a.go", Line: 1}}
			if message {
				out[i].Message = strconv.Itoa(i)
			}
			if line {
				out[i].Location.Line = int32(i + 1)
			}
		}
		return out
	}
	for name, tc := range map[string]struct {
		reason  string
		results []sarif.Result
		bytes   int64
		refused bool
	}{
		"other lines":              {"equal texts share their memory", differs(false, true), 100_000, false},
		"other messages":           {"each is a text of 16,000 characters", differs(true, false), 100_000, true},
		"other messages, big file": {"texts may be a multiple of their file", differs(true, false), 10 << 20, false},
		"ordinary findings":        {"an honest file of 300 bytes per result", manyResults(20_000), 6 << 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			batches, err := Collect([]File{{Log: &sarif.Log{Bytes: tc.bytes, Runs: []sarif.Run{{Tool: "lint", Results: tc.results}}}}}, Choices{}, time.Now())
			harness.Must(t, err)
			_, _, imported := report(t.Context(), testContext(v1alpha1.CategoryCode), batches[0])
			_, _, described := Describe(batches[0], &v1alpha1.Repository{}, fingerprints.Scope{})
			for _, err := range []error{imported, described} {
				var refused *TooLongError
				if errors.As(err, &refused) != tc.refused || !tc.refused && err != nil {
					t.Errorf("error %v, want a refusal: %t, because %s", err, tc.refused, tc.reason)
				}
			}
		})
	}
}

func TestTheRunsOfAToolAreOneBatch(t *testing.T) {
	now := time.Date(2026, 2, 1, 10, 0, 0, 0, time.UTC)
	run := func(tool string, started time.Time) sarif.Run {
		return sarif.Run{Tool: tool, StartedAt: started, Results: []sarif.Result{{RuleID: started.String()}}}
	}
	files := []File{
		{Name: "a", Log: &sarif.Log{Runs: []sarif.Run{run("gosec", now.Add(-time.Hour)), run("gitleaks", now.Add(time.Hour))}}},
		{Name: "b", Log: &sarif.Log{Runs: []sarif.Run{run("gosec", now.Add(-2*time.Hour)), run("gosec", time.Unix(0, 0))}}},
	}
	batches, err := Collect(files, Choices{}, now)
	harness.Must(t, err)
	if len(batches) != 2 || batches[0].Tool != "gitleaks" || batches[0].Category != v1alpha1.CategorySecret || batches[1].Tool != "gosec" {
		t.Fatalf("batches %+v, want gitleaks (Secret) and gosec", batches)
	}
	harness.Same(t, "results of gosec, of both files", 3, len(batches[1].Results))
	if !batches[0].StartedAt.IsZero() || !batches[1].StartedAt.Equal(now.Add(-2*time.Hour)) {
		t.Errorf("started %s and %s: a start in the future or in 1970 is none, and of several the earliest counts", batches[0].StartedAt, batches[1].StartedAt)
	}
	batches, err = Collect(files, Choices{Tool: "mine", Category: v1alpha1.CategoryPackage}, now)
	if err != nil || len(batches) != 1 || batches[0].Tool != "mine" || batches[0].Category != v1alpha1.CategoryPackage {
		t.Errorf("with a tool and a category of the user's: %+v, error %v; want one batch", batches, err)
	}
	if _, err = Collect([]File{{Name: "c", Log: &sarif.Log{Runs: []sarif.Run{{}}}}}, Choices{}, now); err == nil {
		t.Error("a run without a tool's name was taken")
	}
	if _, err = Collect(files, Choices{StartedAt: now.Add(time.Hour)}, now); err == nil {
		t.Error("a start in the future was taken")
	}
	_, err = Collect(files, Choices{StartedAt: time.Unix(0, 0)}, now)
	harness.ErrorContains(t, "a start that a program without a time sent", err, "leave out a time that is not known")
}

func TestRunsOfOneAnalysisAreOneScan(t *testing.T) {
	of := func(analysis string) sarif.Run {
		return sarif.Run{Tool: "lint", AutomationID: analysis, Results: []sarif.Result{{RuleID: "R"}}}
	}
	batches, err := Collect([]File{
		{Name: "a", Log: &sarif.Log{Runs: []sarif.Run{of("a/1")}}}, {Name: "b", Log: &sarif.Log{Runs: []sarif.Run{of("a/2"), of("b/1")}}},
	}, Choices{}, time.Now())
	harness.Must(t, err)
	got := map[string]int{}
	for _, b := range batches {
		got[b.Analysis] += len(b.Results)
	}
	harness.Same(t, "results by analysis", map[string]int{"a": 2, "b": 1}, got)
	harness.Same(t, "scans", 2, len(batches))
}

func TestAFormerNameThatCannotBeOneIsRefused(t *testing.T) {
	for reason, tc := range map[string]struct {
		former, want string
		tools        []string
	}{
		"a tool takes nothing over from itself": {"lint", `is called "lint" now`, []string{"lint"}},
		"one of two tools had that name":        {"old", "only one", []string{"lint", "other"}},
	} {
		var files []File
		for _, tool := range tc.tools {
			files = append(files, File{Name: "f", Log: &sarif.Log{Runs: []sarif.Run{{Tool: tool}}}})
		}
		_, err := Collect(files, Choices{Formerly: tc.former}, time.Now())
		harness.ErrorContains(t, reason, err, tc.want)
	}
}
