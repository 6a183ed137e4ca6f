package main

import (
	"fmt"
	"strings"

	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

// sideTable shows the figures of each side.
func sideTable(title string, sides []measure.Side, results measure.Results) report.Table {
	table := report.Table{Title: title, Columns: []string{"Who, what", "answers/s", "p50", "p99", "CPU", "body"}}
	for _, side := range sides {
		name := side.Name
		table.Rows = append(table.Rows, []string{
			name, fmt.Sprintf("%.0f", results.Rate(name)), milliseconds(results.P50(name)), milliseconds(results.P99(name)),
			milliseconds(results.CPU(name)), kilobytes(results.Bytes(name)),
		})
	}
	return table
}

// against returns a row with the ratio of the facade's answers per second to another side's.
func against(results measure.Results, q question, other string, wanted float64, measured, format string) report.Row {
	facade, rival := sideName(facadeSide, q.what), sideName(other, q.what)
	row := report.AtLeast(measured, wanted, results.Ratio(facade, rival).Median, format)
	row.Measured += spread(results.Ratio(facade, rival), results.CPURatio(facade, rival), format)
	return row
}

// slower returns a row with the ratio of the duration of one of the facade's answers to that of
// another.
func slower(results measure.Results, measured string, wanted float64, side, than string) report.Row {
	row := report.AtMost(measured, wanted, results.Ratio(than, side).Median, "%.2f")
	row.Measured += spread(results.Ratio(than, side), results.CPURatio(than, side), "%.2f")
	return row
}

// ratioRow returns a row of the summary with a bound, AtLeast or AtMost, for the ratio.
func ratioRow(bound func(string, float64, float64, string) report.Row, name string, wanted float64, ratio measure.Ratio) report.Row {
	row := bound(name, wanted, ratio.Median, "%.2f")
	row.Measured += fmt.Sprintf(" (%.2f to %.2f)", ratio.Least, ratio.Most)
	return row.InSummary()
}

// spread shows what the median hides: the rounds' extremes, and the ratio of processor time.
func spread(rate, cpu measure.Ratio, format string) string {
	return fmt.Sprintf(" ("+format+" to "+format+"; CPU "+format+")", rate.Least, rate.Most, cpu.Median)
}

// rateGroup has a bar for each side.
func rateGroup(results measure.Results, sides []string) (group report.Group) {
	for _, side := range sides {
		group.Bars = append(group.Bars, report.Bar{Name: side, Value: results.Rate(side)})
	}
	return group
}

// chartGroup has a bar for each side that was asked.
func chartGroup(title, what string, results measure.Results) report.Group {
	group := report.Group{Name: title}
	for _, who := range []string{ceilingSide, facadeSide, postgresSide, kubeSide} {
		if name := sideName(who, what); len(results[name]) > 0 {
			group.Bars = append(group.Bars, report.Bar{Name: strings.TrimSuffix(name, ", "+what), Value: results.Rate(name)})
		}
	}
	return group
}
