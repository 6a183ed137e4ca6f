package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

const (
	// delayWanted is how many times as long as in a quiet service a decision's delays may be during an import.
	delayWanted = 3
	// recordedWanted is how many times the import's duration may pass until all states are recorded.
	recordedWanted = 1.3
)

const underImportText = "" +
	"A person decides by `PATCH` over REST about one finding after the other, one decision every %s, first " +
	"while nothing else happens, then while the importer of `kubectl findings import` imports new findings. A " +
	"webhook endpoint gets all events of findings; its receiver, on the loopback interface, takes %s to " +
	"answer, so that the import's deliveries can queue up. The decisions end after %d, or once the import's " +
	"last delivery has arrived. All times count from when the `PATCH` is sent: until its answer, until the end " +
	"of a `GET` of the finding that shows the decision, until a watch brings the finding with a status that " +
	"records it, and until the receiver has the delivery. Deliveries before it are those of the import that " +
	"arrived after the `PATCH` was sent.\n\n" +
	"All states of an import are recorded when its Scan's condition `Settled` is true, which the controllers " +
	"check once a second. Each import is of the same file. Imports without an endpoint run before the " +
	"decisions, and are removed again. There is one round."

// delay is one of the times that pass after a decision.
type delay struct {
	// name completes "until".
	name string
	of   func(followed) time.Duration
	// bounded delays have a target.
	bounded bool
}

var delays = []delay{
	{"the `PATCH` is answered", func(f followed) time.Duration { return f.answered }, false},
	{"`GET` shows the decision", func(f followed) time.Duration { return f.shown }, true},
	{"the status records it", func(f followed) time.Duration { return f.recorded }, true},
	{"the webhook has arrived", func(f followed) time.Duration { return f.delivered }, true},
}

func (d delay) quantiles(decisions []followed) quantiles {
	taken := make([]time.Duration, len(decisions))
	for i, decision := range decisions {
		taken[i] = d.of(decision)
	}
	return quantilesOf(taken)
}

func (found *underFound) section() *report.Section {
	section := &report.Section{
		Title:  "Decisions during an import",
		Text:   fmt.Sprintf(underImportText, found.pause, receiverTakes, len(found.quiet)),
		Tables: []report.Table{found.delayTable(), found.importTable()},
	}
	for _, d := range delays {
		if !d.bounded {
			continue
		}
		quiet, during := d.quantiles(found.quiet), d.quantiles(found.during)
		measured := fmt.Sprintf("p99 until %s, during an import of %s findings over that of a quiet service", d.name,
			thousands(found.imported))
		row := report.AtMost(measured, delayWanted, float64(during.p99)/float64(quiet.p99), "%.1f")
		row.Measured += fmt.Sprintf(" (%s over %s)", milliseconds(during.p99), milliseconds(quiet.p99))
		section.Rows = append(section.Rows, row.InSummary())
	}
	for _, times := range found.imports {
		measured := fmt.Sprintf("time until all states of %s imported findings are recorded, over the import's: %s",
			thousands(found.imported), times.where)
		row := report.AtMost(measured, recordedWanted, float64(times.recorded)/float64(times.took), "%.2f")
		row.Measured += fmt.Sprintf(" (%s over %s)", seconds(times.recorded), seconds(times.took))
		section.Rows = append(section.Rows, row.InSummary())
	}
	return section
}

func (found *underFound) delayTable() report.Table {
	table := report.Table{
		Title: fmt.Sprintf("%d decisions in the quiet service and %d during the import, beside %s findings:",
			len(found.quiet), len(found.during), thousands(found.present)),
		Columns: []string{"From a `PATCH` until", "quiet, p50", "p99", "most", "during an import, p50", "p99", "most"},
	}
	for _, d := range delays {
		row := []string{d.name}
		for _, decisions := range [][]followed{found.quiet, found.during} {
			q := d.quantiles(decisions)
			row = append(row, milliseconds(q.p50), milliseconds(q.p99), milliseconds(q.most))
		}
		table.Rows = append(table.Rows, row)
	}
	row := []string{"deliveries before it"}
	for _, decisions := range [][]followed{found.quiet, found.during} {
		counts := overtaken(decisions)
		for _, q := range []float64{0.5, 0.99, 1} {
			row = append(row, thousands(measure.Quantile(counts, q)))
		}
	}
	table.Rows = append(table.Rows, row)
	return table
}

// overtaken returns, in ascending order, how many of an import's deliveries arrived before each decision's.
func overtaken(decisions []followed) []int {
	counts := make([]int, len(decisions))
	for i, decision := range decisions {
		counts[i] = decision.overtaken
	}
	slices.Sort(counts)
	return counts
}

func (found *underFound) importTable() report.Table {
	table := report.Table{
		Title:   fmt.Sprintf("An import of %s findings, with", thousands(found.imported)),
		Columns: []string{"", "its duration", "all states recorded after"},
	}
	for _, times := range found.imports {
		table.Rows = append(table.Rows, []string{times.where, seconds(times.took), seconds(times.recorded)})
	}
	return table
}
