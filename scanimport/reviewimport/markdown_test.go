package reviewimport

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestMarkdownOfAReview(t *testing.T) {
	s := &Summary{
		PRNumber: 412, Commit: "1c2d3e4f", Resolved: 1, Open: 2, OpenHigh: 1, OpenLow: 1,
		Issues: []Issue{
			{Severity: v1alpha1.LevelHigh, Title: "SQL injection", Place: "src/a.go:12", New: true},
			{Severity: v1alpha1.LevelLow, Title: "Weak hash"},
		},
		Base: &BaseSummary{Known: 77, InDoubt: 2, Unsuppressed: 3, Replaced: 4, Fixed: 1, Unscanned: []string{"gosec (Code)"}},
	}
	s.Gate = GateHigh.Judge(s)
	want := "### Security review of pull request 412\n\n" +
		"**Failed**: 1 open issue of high severity that the base does not have.\n\n" +
		"| Open issues | high | medium | low |\n|---|---|---|---|\n| 2 | 1 | 0 | 1 |\n\n" +
		"- **high** `SQL injection` in `src/a.go:12` (new in this commit)\n- **low** `Weak hash`\n\n" +
		"Fixed by this pull request: 1 finding of the base. Known from the base: 77 results." +
		" 2 of them may be another problem of the same kind: their code or place changed." +
		" Known results that the base suppresses in its source, but this commit does not: 3." +
		" Issues with other code in the place of findings that are muted in the base: 4. If the pull request did not " +
		"change this code, update its branch.\n\n" +
		"The base was never scanned with `gosec (Code)`: all its results count as new.\n\n" +
		"Resolved by this commit: 1 issue of earlier ones.\n\nCommit `1c2d3e4f`\n"
	harness.Same(t, "comment", want, string(s.Markdown()))
}

// Whoever opens a pull request may control the texts that a scanner reports for it.
func TestMarkdownShowsTheTextsOfAFileAsTexts(t *testing.T) {
	const evil = "` @everyone <img src=x> [here](https://example.com) \u202e\u00ad\U000e0041 ##vso[task.complete]`\n# owned\n"
	s := &Summary{Open: 1, Commit: evil, Issues: []Issue{{Title: evil, Place: evil}}, Base: &BaseSummary{Unscanned: []string{evil}},
		fromScanners: []string{evil}, Skipped: 1, SkippedBecause: map[string]int{evil: 1}}
	for line := range strings.Lines(string(s.Markdown())) {
		if strings.HasPrefix(line, "# ") || strings.Count(line, "`")%2 != 0 {
			t.Errorf("a text gets out of its line or of its code span: %q", line)
		}
		if strings.ContainsFunc(line, func(r rune) bool { return unicode.Is(unicode.Cf, r) }) {
			t.Errorf("a text hides characters, or reverses the reading direction: %q", line)
		}
		if strings.Contains(line, "##vso[") {
			t.Errorf("a text is a command for the CI that prints the comment: %q", line)
		}
		for i, part := range strings.Split(line, "`") {
			if i%2 == 0 && strings.ContainsAny(part, "@<[") {
				t.Errorf("a text is read as Markdown: %q", part)
			}
		}
	}
}

func TestMarkdownIsBounded(t *testing.T) {
	s := &Summary{Open: 5000}
	for i := range MaxIssues {
		s.Issues = append(s.Issues, Issue{Title: strings.Repeat("x", 4000), Place: strings.Repeat("y", 4000), Name: fmt.Sprint(i)})
	}
	got := string(s.Markdown())
	if len(got) > 65536 || !strings.Contains(got, fmt.Sprintf("- and %d more\n", 5000-maxLines)) {
		t.Errorf("%d bytes:\n%s", len(got), got)
	}
}

func TestAGatePassesOrFails(t *testing.T) {
	for _, c := range []struct {
		reason            string
		high, medium, low int
		passed            []Gate
	}{
		{"nothing is open", 0, 0, 0, []Gate{GateHigh, GateMedium, GateNew}},
		{"a low one", 0, 0, 1, []Gate{GateHigh, GateMedium}},
		{"a medium one", 0, 1, 0, []Gate{GateHigh}},
		{"a high one", 1, 0, 0, nil},
	} {
		s := &Summary{Open: c.high + c.medium + c.low, OpenHigh: c.high, OpenMedium: c.medium, OpenLow: c.low}
		var passed []Gate
		for _, gate := range Gates {
			if gate.Judge(s).Passed {
				passed = append(passed, gate)
			}
		}
		harness.Same(t, fmt.Sprintf("%s: passed", c.reason), c.passed, passed)
	}
}
