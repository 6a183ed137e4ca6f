package reviewimport

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

const (
	// maxLines bounds the list in a comment, because providers refuse comments of more than 65,536 characters.
	maxLines = 20
	// maxTitleWidth, maxPlaceWidth and maxWarningWidth bound the parts of a line, in characters.
	maxTitleWidth   = 160
	maxPlaceWidth   = 200
	maxWarningWidth = 300
	// maxShownWarnings bounds the scanners' warnings in a comment.
	maxShownWarnings = 3
)

// Markdown returns the summary of a reviewed commit as a comment on its pull request.
func (s *Summary) Markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "### Security review of pull request %d\n\n", s.PRNumber)
	if g := s.Gate; g != nil {
		fmt.Fprintf(&b, "**%s**: %s\n\n", map[bool]string{true: "Passed", false: "Failed"}[g.Passed], g.Because)
	}
	s.warnings(&b)
	fmt.Fprint(&b, "| Open issues | high | medium | low |\n|---|---|---|---|\n")
	fmt.Fprintf(&b, "| %d | %d | %d | %d |\n\n", s.Open, s.OpenHigh, s.OpenMedium, s.OpenLow)
	for i := range s.Issues {
		if i == maxLines {
			break
		}
		issue := &s.Issues[i]
		fmt.Fprintf(&b, "- **%s** %s%s", issue.Severity, code(issue.Title, maxTitleWidth), in(issue.Place))
		if issue.New {
			b.WriteString(" (new in this commit)")
		}
		b.WriteByte('\n')
	}
	if more := s.Open - min(len(s.Issues), maxLines); more > 0 {
		fmt.Fprintf(&b, "- and %d more\n", more)
	}
	if s.Open > 0 {
		b.WriteByte('\n')
	}
	s.base(&b)
	if s.Skipped > 0 {
		fmt.Fprintf(&b, "Skipped: %s.\n\n", s.skips())
	}
	if s.Resolved > 0 {
		fmt.Fprintf(&b, "Resolved by this commit: %s of earlier ones.\n\n", number(s.Resolved, "issue"))
	}
	fmt.Fprintf(&b, "Commit %s\n", code(s.Commit, maxPlaceWidth))
	return b.Bytes()
}

// warnings shows what the scanners may have missed. That counts as resolved, so the gate may have passed because of it.
func (s *Summary) warnings(b *bytes.Buffer) {
	for _, warning := range s.fromScanners {
		fmt.Fprintf(b, "Warning: %s\n\n", code(warning, maxWarningWidth))
	}
	if s.moreFromScanners > 0 {
		fmt.Fprintf(b, "More warnings of the scanners: %d.\n\n", s.moreFromScanners)
	}
}

func (s *Summary) base(b *bytes.Buffer) {
	if s.Base == nil {
		return
	}
	fmt.Fprintf(b, "Fixed by this pull request: %s of the base. Known from the base: %s.", number(s.Base.Fixed, "finding"),
		number(s.Base.Known, "result"))
	if s.Base.InDoubt > 0 {
		fmt.Fprintf(b, " %d of them may be another problem of the same kind: their code or place changed.", s.Base.InDoubt)
	}
	if s.Base.Unsuppressed > 0 {
		fmt.Fprintf(b, " Known results that the base suppresses in its source, but this commit does not: %d.", s.Base.Unsuppressed)
	}
	if s.Base.Replaced > 0 {
		fmt.Fprintf(b, " Issues with other code in the place of findings that are muted in the base: %d. If the pull request "+
			"did not change this code, update its branch.", s.Base.Replaced)
	}
	b.WriteString("\n\n")
	for i, scan := range s.Base.Unscanned {
		if i == maxLines {
			fmt.Fprintf(b, "Nor with %d more.\n\n", len(s.Base.Unscanned)-maxLines)
			break
		}
		fmt.Fprintf(b, "The base was never scanned with %s: all its results count as new.\n\n", code(scan, maxTitleWidth))
	}
}

// skips lists the results that did not become issues, by reason, including those that the pull request suppresses in
// its own source.
func (s *Summary) skips() string {
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(s.SkippedBecause)) {
		reasons = append(reasons, fmt.Sprintf("%s %d", code(reason, maxTitleWidth), s.SkippedBecause[reason]))
	}
	return number(s.Skipped, "result") + " (" + strings.Join(reasons, ", ") + ")"
}

func in(place string) string {
	if place == "" {
		return ""
	}
	return " in " + code(place, maxPlaceWidth)
}

// code formats text from a file as code, without links, HTML and mentions, because the author of the pull request may
// have written it. Format characters, such as those that reverse the reading direction, become escapes, including the
// joiners that some scripts and emoji need. A job may print the comment, so commands of CI systems are broken up.
func code(text string, limit int) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '`':
			b.WriteByte('\'')
		case unicode.Is(unicode.Cf, r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return "`" + importer.OneLine(importer.WithoutCommands(b.String()), limit) + "`"
}
