package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/reviewimport"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestPrintable(t *testing.T) {
	for reason, tc := range map[string]struct{ text, want string }{
		"plain text stays":                     {"SQL injection in händler 日本", "SQL injection in händler 日本"},
		"an escape sequence is shown":          {"a\x1b[2Jb", `a\x1b[2Jb`},
		"so is the eight-bit form of it":       {"a\u009b2Jb", `a\u009b2Jb`},
		"and the bell and delete":              {"\a\x7f", `\x07\x7f`},
		"lines become one":                     {"a\r\nb\tc\u2028d\u0085e", "a  b c d e"},
		"text is not turned round":             {"a\u202eb\u2066c\u200fd", `a\u202eb\u2066c\u200fd`},
		"letters may be joined":                {"نامه\u200cای", "نامه\u200cای"},
		"bytes that are no text are not bytes": {"a\x9b\xffb", "a\ufffd\ufffdb"},
		"GitHub's runner gets no command":      {"a ##[add-mask]b ###[group]", `a #\x23[add-mask]b ##\x23[group]`},
		"nor does Azure's agent":               {"a ##vso[task.setvariable]b ##VSO[", `a #\x23vso[task.setvariable]b #\x23VSO[`},
		"nor does TeamCity":                    {"a ##teamcity[publish", `a #\x23teamcity[publish`},
		"nor GitHub's runner in front":         {"\u00a0\t::set-env::b", `  :\x3aset-env::b`},
		"other signs stay":                     {"std::string a::b ## [x] #[y] vso[z]", "std::string a::b ## [x] #[y] vso[z]"},
	} {
		harness.Same(t, reason, tc.want, printable(tc.text))
	}
}

// Names of tools, reasons in files and holders of Leases are whatever others wrote.
func TestWhatOthersWroteReachesNoTerminalAsItIs(t *testing.T) {
	var waits bytes.Buffer
	(&progress{out: &waits}).waiting("g\u202eo into this project", "\x1b[2J")
	imported := &importer.Summary{Tool: "g\u202eo", Category: v1alpha1.CategoryCode, Incomplete: []string{"\x1b[2J"}}
	reviewed := &reviewimport.Summary{Commit: "c", Base: &reviewimport.BaseSummary{Unscanned: []string{"g\u202eo: \x1b[2J"}}}
	decided := builder.Finding("f-1").Build()
	decided.Status.Verdict = &v1alpha1.FindingVerdict{By: "g\u202eo\x1b[2J", ReviewIssue: "i-1"}
	for place, text := range map[string]string{
		"a history":           strings.Join(historyNotes(decided, 1), "\n"),
		"a wait":              waits.String(),
		"an import":           string((&importOptions{}).text([]*importer.Summary{imported})),
		"a review":            string((&reviewOptions{}).text(reviewed)),
		"the lines of errors": printableLines("g\u202eo\n\x1b[2J"),
	} {
		if strings.ContainsAny(text, "\u202e\x1b") || !strings.Contains(text, `g\u202eo`) || !strings.Contains(text, `\x1b[2J`) {
			t.Errorf("%s: %q", place, text)
		}
	}
	harness.Same(t, "lines stay lines", "a\nb", printableLines("a\nb"))
}

func TestShortened(t *testing.T) {
	for text, want := range map[string]string{"": "", "äöüß": "äöüß", "äöüßx": "äöü…", "ab c d": "ab…"} {
		harness.Same(t, text, want, shortened(text, 4))
	}
}
