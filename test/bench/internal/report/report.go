// Package report writes what was measured: tables in Markdown, and a picture.
//
// A document keeps what people wrote in it: a section is put between two marks that name it, and
// nothing else is touched.
package report

import (
	"fmt"
	"strings"
)

// Section is what one measurement found.
type Section struct {
	// Name marks the section in the document, and names its picture.
	Name string
	// Title and Text, in Markdown; the text says how it was measured.
	Title, Text string
	// Rows are figures that were wanted.
	Rows []Row
	// Tables of all else.
	Tables []Table
	// Charts of the section's picture.
	Charts []Chart
}

// Verdict says whether a figure was reached.
type Verdict string

// The verdicts.
const (
	Reached    Verdict = "reached"
	NotReached Verdict = "**not reached**"
	NotRun     Verdict = "not run"
	// Shown is for figures that nothing was asked of.
	Shown Verdict = ""
)

// Row is one figure.
type Row struct {
	Measure, Wanted, Measured string
	Verdict                   Verdict
}

// AtLeast is a row of a figure that is to be so much or more.
func AtLeast(measure string, wanted, measured float64, format string) Row {
	return Row{measure, "at least " + fmt.Sprintf(format, wanted), fmt.Sprintf(format, measured), verdict(measured >= wanted)}
}

// AtMost is a row of a figure that is to be so much or less.
func AtMost(measure string, wanted, measured float64, format string) Row {
	return Row{measure, "at most " + fmt.Sprintf(format, wanted), fmt.Sprintf(format, measured), verdict(measured <= wanted)}
}

// Missing is a row of what could not be measured, with the reason.
func Missing(measure, wanted, reason string) Row {
	return Row{measure, wanted, reason, NotRun}
}

func verdict(reached bool) Verdict {
	if reached {
		return Reached
	}
	return NotReached
}

// Table is a table of Markdown. Columns but the first are set to the right.
type Table struct {
	Title   string
	Columns []string
	Rows    [][]string
}

// Chart is bars, in groups, on a logarithmic scale.
type Chart struct {
	Title, Unit string
	Groups      []Group
}

// Group of bars that stand together.
type Group struct {
	Name string
	Bars []Bar
}

// Bar of a chart. Bars of one name have one colour.
type Bar struct {
	Name  string
	Value float64
}

// Markdown of the section, for a document beside which its picture lies in the folder.
func (s *Section) Markdown(run Run, pictures string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", s.Title)
	if s.Text != "" {
		fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(s.Text))
	}
	if len(s.Rows) > 0 {
		table := Table{Columns: []string{"Measure", "Wanted", "Measured", ""}}
		for _, row := range s.Rows {
			table.Rows = append(table.Rows, []string{row.Measure, row.Wanted, row.Measured, string(row.Verdict)})
		}
		table.write(&b)
	}
	if len(s.Charts) > 0 {
		fmt.Fprintf(&b, "![%s](%s)\n\n", s.Title, pictures+"/"+s.Name+".svg")
	}
	for i := range s.Tables {
		s.Tables[i].write(&b)
	}
	fmt.Fprintf(&b, "<sub>%s</sub>\n", run)
	return b.String()
}

func (t *Table) write(b *strings.Builder) {
	if t.Title != "" {
		fmt.Fprintf(b, "%s\n\n", t.Title)
	}
	fmt.Fprintf(b, "| %s |\n|", strings.Join(t.Columns, " | "))
	for i := range t.Columns {
		b.WriteString(map[bool]string{true: "---|", false: "--:|"}[i == 0])
	}
	b.WriteString("\n")
	for _, row := range t.Rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
	b.WriteString("\n")
}
