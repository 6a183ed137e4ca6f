package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

const (
	// costFindings is the number of findings per turn; costInShort that of a short run.
	costFindings = 1000
	costInShort  = 150
	// maxCostRounds bounds the run time: each turn has its own control plane.
	maxCostRounds = 2
)

// The targets of this build, as a fraction of the earlier build's figures.
const (
	wantedTime  = 0.5
	wantedBytes = 0.67
)

const costText = "Both builds do the same work with the same findings, each on a control plane of its own and one after the other, " +
	"the order changed from round to round, and this build a second time with `--implied-statuses=false`: a SARIF file is imported by `kubectl findings import` while controllers and REST API run; " +
	"a person then decides about each finding by a merge patch; and the same file is imported again. A step ends when the controllers have " +
	"nothing left to do. Processor time is that of the processes themselves, user and system. Written are the bytes that etcd was given to put, " +
	"of everything. The heap is that of kube-apiserver after a collection, less what it was before the first import."

// cost compares the cost of a finding's whole life with an earlier commit.
func cost(ctx context.Context, b *bench.Bench) (*report.Section, error) {
	section := &report.Section{Title: "What a finding costs, against an earlier build", Text: costText}
	earlier, err := b.EarlierBuild(ctx, b.Against)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		b.Say("cost: %v", err)
		reason := fmt.Sprintf("commit %s cannot be built here", b.Against)
		section.Rows = []report.Row{report.Missing("a finding's whole life", "half of it", reason)}
		return section, nil
	}
	these := []bench.Build{b.ThisBuild(), b.ThisBuild().With("--implied-statuses=false")}
	builds := append([]bench.Build{earlier}, these...)
	costs := map[string][]*lifeCost{}
	for round := range min(b.Plan.Rounds, maxCostRounds) {
		for _, build := range builds {
			b.Say("cost: round %d, %s", round+1, build.Name)
			c, err := measureLife(ctx, b, build)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", build.Name, err)
			}
			costs[build.Name] = append(costs[build.Name], c)
		}
		slices.Reverse(builds)
	}
	before := costs[earlier.Name]
	for _, build := range these {
		after := costs[build.Name]
		section.Rows = append(section.Rows, costRows(build, before, after)...)
		section.Tables = append(section.Tables, stepTable(earlier.Name, build.Name, before, after),
			sizeTable(earlier.Name, build.Name, before, after))
	}
	return section, nil
}

// costFigure is a figure that is compared.
type costFigure struct {
	name   string
	wanted float64
	of     func(*lifeCost) float64
	format func(float64) string
}

var costFigures = []costFigure{
	{"processor time of a finding's whole life", wantedTime, func(c *lifeCost) float64 { return c.total() }, inMilliseconds},
	{"bytes written to etcd for it", wantedBytes, func(c *lifeCost) float64 { return c.written }, inBytes},
	{"bytes stored", wantedBytes, func(c *lifeCost) float64 { return c.stored }, inBytes},
	{"heap of kube-apiserver for it", wantedBytes, func(c *lifeCost) float64 { return c.heap }, inBytes},
}

func costRows(build bench.Build, before, after []*lifeCost) []report.Row {
	rows := make([]report.Row, len(costFigures))
	name := strings.TrimPrefix(strings.Join(build.ControllerFlags, " ")+": ", ": ")
	for i, f := range costFigures {
		rows[i] = ratioRow(report.AtMost, name+f.name+", over that of the earlier build", f.wanted, compared(before, after, f.of))
	}
	return rows
}

// compared returns the spread of the rounds' ratios.
func compared(before, after []*lifeCost, of func(*lifeCost) float64) measure.Ratio {
	ratios := make([]float64, len(before))
	for i := range before {
		ratios[i] = of(after[i]) / of(before[i])
	}
	return measure.Spread(ratios)
}

func middle(costs []*lifeCost, of func(*lifeCost) float64) float64 {
	figures := make([]float64, len(costs))
	for i, c := range costs {
		figures[i] = of(c)
	}
	return measure.Spread(figures).Median
}

// stepTable shows the processor time of each step in each process.
func stepTable(earlier, build string, before, after []*lifeCost) report.Table {
	table := report.Table{
		Title:   fmt.Sprintf("Processor time for one finding, at %s and in %s:", earlier, build),
		Columns: append([]string{"Step"}, costProcesses...),
	}
	for _, step := range costSteps {
		row := []string{step}
		for _, process := range costProcesses {
			of := func(c *lifeCost) float64 { return c.cpu[step][process] }
			row = append(row, inMilliseconds(middle(before, of))+" → "+inMilliseconds(middle(after, of)))
		}
		table.Rows = append(table.Rows, row)
	}
	return table
}

func sizeTable(earlier, build string, before, after []*lifeCost) report.Table {
	table := report.Table{Columns: []string{"One finding", earlier, build}}
	for _, f := range append(slices.Clone(costFigures), costFigure{
		name: "of the stored bytes, managedFields", of: func(c *lifeCost) float64 { return c.owners }, format: inBytes,
	}) {
		table.Rows = append(table.Rows, []string{f.name, f.format(middle(before, f.of)), f.format(middle(after, f.of))})
	}
	return table
}
