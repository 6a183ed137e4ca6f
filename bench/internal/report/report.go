// Package report writes the results of measurements: for each section a Markdown page of tables with a picture,
// and the most important figures in the summary of one document.
//
// The document keeps its hand-written text: the summary stands between two marks, and the rest is not changed.
package report

import (
	"fmt"
	"strings"
)

// Section holds the results of one measurement.
type Section struct {
	// Name of the section's page and picture, without their suffixes.
	Name string
	// Title and Text are Markdown; the text describes how it was measured.
	Title, Text string
	// Rows are the figures that have a target or are shown.
	Rows []Row
	// Tables hold all other results.
	Tables []Table
	// Charts make up the section's picture.
	Charts []Chart
}

// Verdict reports whether a target was reached.
type Verdict string

// The verdicts.
const (
	Reached    Verdict = "reached"
	NotReached Verdict = "**not reached**"
	NotRun     Verdict = "not run"
	// Shown is for figures without a target.
	Shown Verdict = ""
)

// Row is one figure.
type Row struct {
	Measure, Wanted, Measured string
	Verdict                   Verdict
	// Key marks figures for the summary, which also lists each figure that was not reached. Of the others
	// the summary only counts how many were reached.
	Key bool
}

// AtLeast returns a row for a figure with a lower bound.
func AtLeast(measure string, wanted, measured float64, format string) Row {
	return bounded(measure, "at least "+format, wanted, measured, format, measured >= wanted)
}

// AtMost returns a row for a figure with an upper bound.
func AtMost(measure string, wanted, measured float64, format string) Row {
	return bounded(measure, "at most "+format, wanted, measured, format, measured <= wanted)
}

// Missing returns a row for a figure that could not be measured, with the reason.
func Missing(measure, wanted, reason string) Row {
	return Row{Measure: measure, Wanted: wanted, Measured: reason, Verdict: NotRun}
}

func bounded(measure, bound string, wanted, measured float64, format string, reached bool) Row {
	row := Row{
		Measure: measure, Wanted: fmt.Sprintf(bound, wanted), Measured: fmt.Sprintf(format, measured), Verdict: NotReached,
	}
	if reached {
		row.Verdict = Reached
	}
	return row
}

// Table is a Markdown table. All columns but the first are right-aligned.
type Table struct {
	Title   string
	Columns []string
	Rows    [][]string
}

// Chart shows bars, in groups, on a logarithmic scale.
type Chart struct {
	Title, Unit string
	Groups      []Group
}

// Group is a group of adjacent bars.
type Group struct {
	Name string
	Bars []Bar
}

// Bar is a bar of a chart. Bars with the same name have the same colour.
type Bar struct {
	Name  string
	Value float64
}

// InSummary marks the row as a key figure.
func (r Row) InSummary() Row {
	r.Key = true
	return r
}

// Markdown returns the section's page. It links to the picture in the same folder.
func (s *Section) Markdown(run Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", s.Title)
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
		fmt.Fprintf(&b, "![%s](%s.svg)\n\n", s.Title, s.Name)
	}
	for i := range s.Tables {
		s.Tables[i].write(&b)
	}
	fmt.Fprintf(&b, "<sub>%s</sub>\n", run)
	return b.String()
}

// link returns a link from the document to the section's page.
func (s *Section) link() string {
	return fmt.Sprintf("[%s](%s/%s.md)", s.Title, pagesFolder, s.Name)
}

// lines returns the section's lines in the summary.
func (s *Section) lines() []string {
	var lines []string
	line := func(row Row) {
		lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s | %s |", s.link(), row.Measure, row.Wanted, row.Measured,
			row.Verdict))
	}
	others := 0
	for _, row := range s.Rows {
		switch {
		case row.Key || row.Verdict == NotReached || row.Verdict == NotRun:
			line(row)
		case row.Verdict == Reached:
			others++
		}
	}
	if others > 0 {
		line(Row{Measure: fmt.Sprintf("%d more figures", others), Verdict: Reached})
	}
	return lines
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
