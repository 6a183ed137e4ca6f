package export

import (
	"encoding/csv"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var march = time.Date(2026, time.March, 2, 8, 30, 0, 0, time.UTC)

// each yields findings.
func each(findings ...*openapi.FindingFull) Findings {
	return func(yield func(*openapi.FindingFull, error) bool) {
		for _, f := range findings {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// written returns the CSV of findings as a standard parser reads it.
func written(t rapid.TB, findings ...*openapi.FindingFull) [][]string {
	t.Helper()
	var out strings.Builder
	harness.Must(t, CSV(&out, each(findings...)))
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil {
		t.Fatalf("%v in %q", err, out.String())
	}
	if len(rows) != len(findings)+1 {
		t.Fatalf("%d rows of %d findings", len(rows), len(findings))
	}
	return rows
}

func TestCSVHasARowForEachFinding(t *testing.T) {
	score, reason, category, end := float32(7.5), openapi.DecisionReason("false-positive"), openapi.FindingCategory("Package"), march.Add(time.Hour)
	f := &openapi.FindingFull{
		Id: "f-1", Status: "open_muted", UserStatus: "muted", Reason: &reason, Comments: "seen, \"twice\"\nby two", DecidedBy: "alice",
		ExpiresAt: &end, CreatedAt: march, UpdatedAt: march.Add(time.Minute),
		Details: openapi.Details{Title: "Old lodash", Severity: "high",
			Location: openapi.FileLocation{FilePath: "web/package.json", LineNumber: 3, Url: "https://code.example/3"}},
		Verdict: openapi.FindingVerdict{Policy: "tests", ReviewIssue: "i-1", By: "bob", Reason: &reason, Comment: "=1+1"},
		Repo:    openapi.FindingRepo{Id: "r-1", Name: "shop"}, Project: openapi.FindingProject{Id: "p-1"},
		Facts: openapi.FindingFacts{Tool: "trivy", RuleId: "CVE-1", Class: "CWE-1", Category: &category, Score: &score,
			Vulnerability: openapi.FindingVulnerability{Id: "CVE-1"},
			Package:       openapi.FindingPackage{Name: "lodash", Version: "4.0.0", FixedVersion: "4.1.0"}},
	}
	f.Project.Context.Owner = "team-a"
	bare := &openapi.FindingFull{Id: "f-2", CreatedAt: march, UpdatedAt: march}
	rows := written(t, f, bare)
	want := [][]string{
		{"id", "title", "severity", "score", "status", "user_status", "reason", "comments", "decided_by", "expires_at", "verdict_policy",
			"repository", "project", "owner", "tool", "rule", "class", "category", "vulnerability", "package", "version", "fixed_version",
			"file", "line", "url", "created_at", "updated_at", "verdict_review_issue", "verdict_by", "verdict_reason", "verdict_comment"},
		{"f-1", "Old lodash", "high", "7.5", "open_muted", "muted", "false-positive", "seen, \"twice\"\nby two", "alice", "2026-03-02T09:30:00Z", "tests",
			"shop", "p-1", "team-a", "trivy", "CVE-1", "CWE-1", "Package", "CVE-1", "lodash", "4.0.0", "4.1.0",
			"web/package.json", "3", "https://code.example/3", "2026-03-02T08:30:00Z", "2026-03-02T08:31:00Z", "i-1", "bob", "false-positive", "'=1+1"},
		{"f-2", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "2026-03-02T08:30:00Z", "2026-03-02T08:30:00Z", "", "", "", ""},
	}
	harness.Same(t, "rows", want, rows)
}

func TestALineBreakOfAnyKindStaysALineBreak(t *testing.T) {
	f := &openapi.FindingFull{Comments: "one\rtwo\r\nthree\nfour\r"}
	harness.Same(t, "comment", "one\ntwo\nthree\nfour\n", written(t, f)[1][7])
}

func TestACellWithoutCarriageReturnsIsNotCopied(t *testing.T) {
	cell := strings.Repeat("A title of a finding. ", 4)
	harness.Same(t, "allocations", 0.0, testing.AllocsPerRun(10, func() { cell = lineEnds(cell) }))
}

func TestFormulasAreTexts(t *testing.T) {
	for cell, want := range map[string]string{
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "''\t'=1"[1:],
		"  =1": "'  =1", "\u00a0=1": "'\u00a0=1", "\ufeff=1": "'\ufeff=1", "\u200b\u3000＝1": "'\u200b\u3000＝1", "＋1": "'＋1", "－1": "'－1", "＠a": "'＠a",
		`"=1"`: `'"=1"`, "a;=1": "a;'=1", "a\n- b": "a\n'- b", "": "", "a=b": "a=b", "a - b": "a - b", "it's": "it's", "'=1": "'=1", "team-a": "team-a", "1;2": "1;2",
	} {
		harness.Same(t, "cell "+cell, want, literal(cell))
	}
}

// formula matches text that a spreadsheet takes for a formula, independently of the code under test: at the
// beginning, or where a program that separates cells by semicolons or tabs sees a cell begin.
var formula = regexp.MustCompile(`(?:^|[;\t\r\n])[\s\p{Z}\p{C}\p{M}"\x{FFFD}]*[=+\-@＝＋－＠]|^[\t\r]`)

func checkLiteral(t rapid.TB, title string) {
	t.Helper()
	f := &openapi.FindingFull{Comments: "seen", Details: openapi.Details{Title: title}}
	row := written(t, f)[1]
	got, title := row[1], lineEnds(title)
	if formula.MatchString(literal(title)) || formula.MatchString(got) {
		t.Fatalf("%q is written as %q, a formula", title, got)
	}
	if plain := strings.ReplaceAll(literal(title), "'", ""); plain != strings.ReplaceAll(title, "'", "") {
		t.Fatalf("%q is written as %q: more than apostrophes was added", title, literal(title))
	}
	if !formula.MatchString(title) && !strings.ContainsAny(title, signs) && literal(title) != title {
		t.Fatalf("%q is no formula, and written as %q", title, literal(title))
	}
	if row[7] != "seen" {
		t.Fatalf("%q changes the cell beside it to %q", title, row[7])
	}
}

func TestNoCellIsAFormula(t *testing.T) {
	nasty := rapid.StringOfN(rapid.SampledFrom([]rune("=+-@\t\r\n ;,\"'a1|＝＋－＠\u00a0\u200b\ufeff\u3000\x00\u0301")), 0, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		checkLiteral(t, rapid.OneOf(nasty, rapid.String()).Draw(t, "title"))
	})
}

func FuzzCells(f *testing.F) {
	for _, seed := range []string{"=cmd|' /C calc'!A0", "\t=1", " ＝1", "a;=1", "a\r\n@b", "\"=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, title string) {
		if !utf8.ValidString(title) {
			t.Skip("no resource holds it")
		}
		checkLiteral(t, title)
	})
}
