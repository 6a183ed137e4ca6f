package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// summary is what a SARIF reader learns about a finding.
type summary struct {
	Tool, Rule, Path, Severity, Message, CWE string
	Line                                     int32
	Fingerprints                             map[string]string
	Suppressed                               bool
}

func drawFull(t *rapid.T, id int) *openapi.FindingFull {
	word := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
	f := &openapi.FindingFull{
		Id: fmt.Sprint("f-", id), UserStatus: openapi.UserStatus(word("user status", "open", "active", "muted")), Comments: word("comment", "", "seen"),
		Details: openapi.Details{
			Title: word("title", "SQL injection", "{0} & <b>", "Severity: LOW"), Description: word("description", "", "long {1}"),
			Severity: openapi.Severity(word("severity", "high", "medium", "low")),
			Location: openapi.FileLocation{
				FilePath: word("path", "", "a/b.go", "a b/ü%.go", "a%20b.go", "a:b/c#d?e.go", "C:x.go", "https://shop.example/login?a=b"), LineNumber: rapid.Int32Range(0, 3).Draw(t, "line"),
			},
		},
		Facts: openapi.FindingFacts{Tool: word("tool", "", "gosec", "checkov", "gitleaks"), RuleId: word("rule", "", "G1", "G2"), Class: word("class", "", "CWE-79")},
	}
	if tenths := rapid.IntRange(-1, 100).Draw(t, "score"); tenths >= 0 {
		score := float32(tenths) / 10
		f.Facts.Score = &score
	}
	if kind := openapi.SuppressionKind(word("suppression", "", "inSource", "external")); kind != "" {
		f.Facts.Suppression = openapi.FindingSuppression{Kind: &kind, Justification: "generated"}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "fingerprints") {
		f.Fingerprints = append(f.Fingerprints, openapi.Fingerprint{Name: fmt.Sprint("v", i), Value: word("value", "a", "b")})
	}
	return f
}

// expected returns what the export must contain about a finding.
func expected(f *openapi.FindingFull) summary {
	e := summary{
		Tool: f.Facts.Tool, Rule: f.Facts.RuleId, Path: f.Details.Location.FilePath, Severity: string(f.Details.Severity), CWE: f.Facts.Class,
		Message: strings.TrimSpace(f.Details.Title + "\n\n" + f.Details.Description), Suppressed: f.UserStatus == "muted" || f.Facts.Suppression.Kind != nil,
	}
	if e.Tool == "" {
		e.Tool = "unknown"
	}
	if e.Path != "" {
		e.Line = f.Details.Location.LineNumber
	}
	for _, known := range f.Fingerprints {
		if e.Fingerprints == nil {
			e.Fingerprints = map[string]string{}
		}
		e.Fingerprints[known.Name] = known.Value
	}
	return e
}

// exported returns the SARIF of findings, and the findings of each tool.
func exported(t rapid.TB, findings []*openapi.FindingFull) (string, map[string][]*openapi.FindingFull) {
	t.Helper()
	byTool := map[string][]*openapi.FindingFull{}
	for _, f := range findings {
		byTool[f.Facts.Tool] = append(byTool[f.Facts.Tool], f)
	}
	var out strings.Builder
	tools := append([]string{"gone"}, slices.Sorted(maps.Keys(byTool))...) // one tool has no findings left
	harness.Must(t, SARIF(&out, tools, func(tool string) Findings { return each(byTool[tool]...) }))
	return out.String(), byTool
}

// The importer reads an export as the same results, with the same rule, place and severity.
func TestSARIFIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var findings []*openapi.FindingFull
		for i := range rapid.IntRange(1, 8).Draw(t, "findings") {
			findings = append(findings, drawFull(t, i))
		}
		text, byTool := exported(t, findings)
		checkStructure(t, text)
		log, err := sarif.Parse(strings.NewReader(text), sarif.Options{})
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		var got, want []summary
		for _, run := range log.Runs {
			if len(run.Skipped) > 0 || run.Incomplete != "" {
				t.Fatalf("of the run %s: skipped %v, incomplete: %s", run.Tool, run.Skipped, run.Incomplete)
			}
			for _, r := range run.Results {
				got = append(got, summary{
					Tool: run.Tool, Rule: r.RuleID, Path: r.Location.Path, Line: r.Location.Line, Severity: string(r.Severity), Message: r.Message,
					CWE: strings.Join(r.CWEs, ","), Fingerprints: r.Fingerprints, Suppressed: r.Suppression != nil,
				})
			}
		}
		for _, tool := range slices.Sorted(maps.Keys(byTool)) {
			for _, f := range byTool[tool] {
				want = append(want, expected(f))
			}
		}
		harness.Same(t, text, want, got)
	})
}

func TestSARIFSaysWhoSuppressesAndWhy(t *testing.T) {
	reason, inSource, muted := openapi.DecisionReason("false-positive"), openapi.SuppressionKind("inSource"), openapi.UserStatus("muted")
	policy := openapi.FindingVerdict{UserStatus: &muted, Policy: "tests", By: "bob", Comment: "test code", Reason: &reason}
	for name, test := range map[string]struct {
		finding openapi.FindingFull
		want    []sarifSuppression
	}{
		"nobody": {openapi.FindingFull{UserStatus: "active"}, []sarifSuppression{}},
		"a person": {openapi.FindingFull{UserStatus: "muted", Reason: &reason, Comments: "checked", DecidedBy: "alice"},
			[]sarifSuppression{{"external", "accepted", "false-positive: checked (alice)"}}},
		"somebody":  {openapi.FindingFull{UserStatus: "muted"}, []sarifSuppression{{"external", "accepted", ""}}},
		"a policy":  {openapi.FindingFull{UserStatus: "open", Verdict: policy}, []sarifSuppression{{"external", "accepted", "false-positive: test code (policy/tests of bob)"}}},
		"in a pull": {openapi.FindingFull{UserStatus: "open", Verdict: openapi.FindingVerdict{UserStatus: &muted, By: "bob"}}, []sarifSuppression{{"external", "accepted", "(bob)"}}},
		"the source": {openapi.FindingFull{UserStatus: "open", Facts: openapi.FindingFacts{Suppression: openapi.FindingSuppression{Kind: &inSource, Justification: "generated"}}},
			[]sarifSuppression{{"inSource", "accepted", "generated"}}},
		"the source and a person": {openapi.FindingFull{UserStatus: "muted", DecidedBy: "alice", Facts: openapi.FindingFacts{Suppression: openapi.FindingSuppression{Kind: &inSource}}},
			[]sarifSuppression{{"inSource", "accepted", ""}, {"external", "accepted", "(alice)"}}},
	} {
		harness.Same(t, name, test.want, suppressions(&test.finding))
	}
}

// checkStructure checks that a log has the members that the standard requires.
func checkStructure(t rapid.TB, text string) {
	t.Helper()
	var log struct {
		Schema  string `json:"$schema"`
		Version string
		Runs    []struct {
			Tool    *sarifTool
			Results []sarifResult
		}
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&log); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if log.Version != "2.1.0" || log.Runs == nil {
		t.Fatalf("no log of version 2.1.0 with runs: %s", text)
	}
	for _, run := range log.Runs {
		if run.Tool == nil || run.Tool.Driver.Name == "" || run.Results == nil {
			t.Fatalf("a run without a tool or results: %s", text)
		}
		ids := map[string]bool{}
		for _, rule := range run.Tool.Driver.Rules {
			if rule.ID == "" || ids[rule.ID] {
				t.Fatalf("rule %q is empty or there twice: %s", rule.ID, text)
			}
			ids[rule.ID] = true
		}
		for _, r := range run.Results {
			if r.Message.Text == "" || !slices.Contains([]string{"none", "note", "warning", "error"}, r.Level) {
				t.Fatalf("a result without message or level: %+v", r)
			}
			if r.RuleIndex != nil && (*r.RuleIndex >= len(run.Tool.Driver.Rules) || run.Tool.Driver.Rules[*r.RuleIndex].ID != r.RuleID) {
				t.Fatalf("ruleIndex %d is not that of %s", *r.RuleIndex, r.RuleID)
			}
			for _, l := range r.Locations {
				if l.Physical.Artifact.URI == "" || l.Physical.Region != nil && l.Physical.Region.StartLine < 1 {
					t.Fatalf("the location %+v", l)
				}
			}
			for _, s := range r.Suppressions {
				if s.Kind != "inSource" && s.Kind != "external" || s.Status != "accepted" {
					t.Fatalf("the suppression %+v", s)
				}
			}
		}
	}
}

func TestSARIFOfNothingIsALogWithoutRuns(t *testing.T) {
	text, _ := exported(t, nil)
	checkStructure(t, text)
	if !strings.HasSuffix(text, `"runs":[]}`+"\n") {
		t.Errorf("got %s", text)
	}
}

// Imports often take the title from the description.
func TestSARIFRepeatsNoText(t *testing.T) {
	for description, want := range map[string]string{
		"":                            "Hard-coded key.",
		"Hard-coded key.":             "Hard-coded key.",
		"Hard-coded key. Rotate it.":  "Hard-coded key. Rotate it.",
		"Hard-coded key.\n\nLong.":    "Hard-coded key.\n\nLong.",
		"Hard-coded key.pem is read.": "Hard-coded key.\n\nHard-coded key.pem is read.",
		"Another text.":               "Hard-coded key.\n\nAnother text.",
	} {
		harness.Same(t, description, want, message(&openapi.Details{Title: "Hard-coded key.", Description: description}))
	}
	for _, tc := range []struct {
		reason, title, description string
		repeats                    bool
	}{
		{"no sentence", "Key", "Key of a user", false},
		{"no sentence, in brackets", "Eval (CWE-95)", "Eval (CWE-95) is called.", false},
		{"a command", "Never disable TLS verification!", "Never disable TLS verification! Use the pool.", true},
		{"a question", "Is this hash still safe to use?", "Is this hash still safe to use? Use SHA-256.", true},
		{"brackets", "Eval is called (see CWE-95.)", "Eval is called (see CWE-95.) Avoid it.", true},
		{"a broken line", "It calls a value which allows injection.", "It calls a value\nwhich allows injection. Do not.", true},
		{"a line of another system", "Hard-coded key", "Hard-coded key\r\nRotate it.", true},
		{"two words are not one", "Key ring.", "Keyring. Rotate it.", false},
	} {
		want := tc.title + "\n\n" + tc.description
		if tc.repeats {
			want = tc.description
		}
		harness.Same(t, tc.reason, want, message(&openapi.Details{Title: tc.title, Description: tc.description}))
	}
}

// The number of described rules is bounded.
func TestSARIFDescribesABoundedNumberOfRules(t *testing.T) {
	var findings []*openapi.FindingFull
	for i := range maxRules + 2 {
		findings = append(findings, &openapi.FindingFull{Details: openapi.Details{Title: "x", Severity: "low"}, Facts: openapi.FindingFacts{RuleId: fmt.Sprint("R", i)}})
	}
	text, _ := exported(t, findings)
	checkStructure(t, text)
	log, err := sarif.Parse(strings.NewReader(text), sarif.Options{})
	if err != nil || len(log.Runs[0].Results) != len(findings) || log.Runs[0].Results[maxRules+1].RuleID != fmt.Sprint("R", maxRules+1) {
		t.Fatalf("%v; the last rules are lost", err)
	}
	harness.Same(t, "rules that are described", maxRules, strings.Count(text, `{"id":`))
}

// An error of the reader or of the writer ends the export.
func TestErrorsEndAnExport(t *testing.T) {
	gone := errors.New("gone")
	failing := func(yield func(*openapi.FindingFull, error) bool) { yield(nil, gone) }
	one := &openapi.FindingFull{Details: openapi.Details{Title: strings.Repeat("x", 1<<16)}}
	for name, err := range map[string]error{
		"findings of a CSV": CSV(&strings.Builder{}, failing), "findings of a log": SARIF(&strings.Builder{}, []string{""}, func(string) Findings { return failing }),
		"the writer of a CSV": CSV(broken{gone}, each(one)), "the writer of a log": SARIF(broken{gone}, []string{""}, func(string) Findings { return each(one) }),
	} {
		if !errors.Is(err, gone) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }
