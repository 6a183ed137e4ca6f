package export

import (
	"cmp"
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// column is a column of the CSV.
type column struct {
	name string
	cell func(*openapi.FindingFull) string
}

type finding = openapi.FindingFull

var columns = []column{
	{"id", func(f *finding) string { return f.Id }},
	{"title", func(f *finding) string { return f.Details.Title }},
	{"severity", func(f *finding) string { return string(f.Details.Severity) }},
	{"score", score},
	{"status", func(f *finding) string { return string(f.Status) }},
	{"user_status", func(f *finding) string { return string(f.UserStatus) }},
	{"reason", func(f *finding) string { return text(f.Reason) }},
	{"comments", func(f *finding) string { return f.Comments }},
	{"decided_by", func(f *finding) string { return f.DecidedBy }},
	{"expires_at", func(f *finding) string { return timestamp(f.ExpiresAt) }},
	{"verdict_policy", func(f *finding) string { return f.Verdict.Policy }},
	{"repository", func(f *finding) string { return cmp.Or(f.Repo.Name, f.Repo.Id) }},
	{"project", func(f *finding) string { return cmp.Or(f.Project.Name, f.Project.Id) }},
	{"owner", func(f *finding) string { return f.Project.Context.Owner }},
	{"tool", func(f *finding) string { return f.Facts.Tool }},
	{"rule", func(f *finding) string { return f.Facts.RuleId }},
	{"class", func(f *finding) string { return f.Facts.Class }},
	{"category", func(f *finding) string { return text(f.Facts.Category) }},
	{"vulnerability", func(f *finding) string { return f.Facts.Vulnerability.Id }},
	{"package", func(f *finding) string { return f.Facts.Package.Name }},
	{"version", func(f *finding) string { return f.Facts.Package.Version }},
	{"fixed_version", func(f *finding) string { return f.Facts.Package.FixedVersion }},
	{"file", func(f *finding) string { return f.Details.Location.FilePath }},
	{"line", line},
	{"url", func(f *finding) string { return f.Details.Location.Url }},
	{"created_at", func(f *finding) string { return render.Timestamp(f.CreatedAt) }},
	{"updated_at", func(f *finding) string { return render.Timestamp(f.UpdatedAt) }},
	// New columns come last, because programs may count the columns before them.
	{"verdict_review_issue", func(f *finding) string { return f.Verdict.ReviewIssue }},
	{"verdict_by", func(f *finding) string { return f.Verdict.By }},
	{"verdict_reason", func(f *finding) string { return text(f.Verdict.Reason) }},
	{"verdict_comment", func(f *finding) string { return f.Verdict.Comment }},
}

func score(f *finding) string {
	if f.Facts.Score == nil {
		return ""
	}
	return strconv.FormatFloat(float64(*f.Facts.Score), 'f', 1, 32)
}

func line(f *finding) string {
	if f.Details.Location.LineNumber == 0 {
		return ""
	}
	return strconv.Itoa(int(f.Details.Location.LineNumber))
}

func timestamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return render.Timestamp(*t)
}

// CSV writes a header and one row per finding according to RFC 4180, in UTF-8 without a byte order mark. Cells
// that a spreadsheet would take for a formula are escaped.
func CSV(w io.Writer, findings Findings) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	row := make([]string, len(columns))
	for i, c := range columns {
		row[i] = c.name
	}
	if err := out.Write(row); err != nil {
		return err
	}
	for f, err := range findings {
		if err != nil {
			return err
		}
		for i, c := range columns {
			row[i] = literal(lineEnds(c.cell(f)))
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// lineEnds normalizes line breaks, because csv.Writer drops a lone carriage return, which would join two words. Unlike
// a strings.Replacer, it does not copy texts without any.
func lineEnds(cell string) string {
	return strings.ReplaceAll(strings.ReplaceAll(cell, "\r\n", "\n"), "\r", "\n")
}

// literal puts an apostrophe before text that a spreadsheet would take for a formula: text that begins with one of the
// signs, even after spaces and invisible characters, and text that begins with a tab, which some programs drop.
// Programs with other separators, such as Excel with semicolons in many countries, start a new cell after each
// semicolon, tab and line break, so literal does the same there.
func literal(cell string) string {
	if !strings.ContainsAny(cell, signs+"\t") {
		return cell
	}
	var out strings.Builder
	written, start, begins := 0, 0, true
	for i, r := range cell {
		if begins && strings.ContainsRune(signs, r) || i == 0 && r == '\t' {
			out.WriteString(cell[written:start])
			out.WriteByte('\'')
			written, begins = start, false
		}
		switch {
		case r == ';' || r == '\t' || r == '\n':
			start, begins = i+1, true
		case !blank(r):
			begins = false
		}
	}
	out.WriteString(cell[written:])
	return out.String()
}

// signs are the characters that begin a formula, in every width that a spreadsheet may normalize.
const signs = "=+-@＝＋－＠﹦﹢﹣﹫⁺⁼⁻₊₌₋−"

// blank reports whether a program may skip the character.
func blank(r rune) bool {
	return r == '"' || r == unicode.ReplacementChar || unicode.In(r, unicode.C, unicode.Z, unicode.M)
}
