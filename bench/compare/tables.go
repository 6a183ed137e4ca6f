package main

import (
	"fmt"
	"strings"

	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

// sideTable shows what each side did.
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

// against says how many times as many answers a second the facade gave as another.
func against(results measure.Results, q question, other string, wanted float64, measured, format string) report.Row {
	facade, rival := sideName(facadeSide, q.what), sideName(other, q.what)
	row := report.AtLeast(measured, wanted, results.Ratio(facade, rival).Median, format)
	row.Measured += spread(results.Ratio(facade, rival), results.CPURatio(facade, rival), format)
	return row
}

// slower says how many times as long one of the facade's answers takes as another.
func slower(results measure.Results, measured string, wanted float64, side, than string) report.Row {
	row := report.AtMost(measured, wanted, results.Ratio(than, side).Median, "%.2f")
	row.Measured += spread(results.Ratio(than, side), results.CPURatio(than, side), "%.2f")
	return row
}

// spread shows what the median does not: the rounds' least and most, and the ratio of processor time.
func spread(rate, cpu measure.Ratio, format string) string {
	return fmt.Sprintf(" ("+format+" to "+format+"; CPU "+format+")", rate.Least, rate.Most, cpu.Median)
}

// chartGroup has a bar for each who was asked for it.
func chartGroup(title, what string, results measure.Results) report.Group {
	group := report.Group{Name: title}
	for _, who := range []string{ceilingSide, facadeSide, postgresSide, kubeSide} {
		if name := sideName(who, what); len(results[name]) > 0 {
			group.Bars = append(group.Bars, report.Bar{Name: strings.TrimSuffix(name, ", "+what), Value: results.Rate(name)})
		}
	}
	return group
}
