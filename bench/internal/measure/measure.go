// Package measure compares things that do the same work, in rounds in which each has its turn.
//
// A machine that others use is now fast and now slow, so no figure of one side means much alone. In
// a round all sides meet nearly the same machine: what counts is the ratio within each round, and
// of these the median.
package measure

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Side is one of those that are compared.
type Side struct {
	// Name is what its results are asked for by.
	Name string
	// Run does the work once, for about as long as it is told to.
	Run func(ctx context.Context, duration time.Duration) (Sample, error)
	// PIDs of the processes that do the work, if their processor time is to be counted.
	PIDs []int
	// Children, if there, finds further ones before each turn: those of a server that has a
	// process for each connection.
	Children func() ([]int, error)
}

// Sample is what a side did in a round.
type Sample struct {
	// Operations that were done in Elapsed.
	Operations int
	Elapsed    time.Duration
	// P50 and P99 of the time that an operation took.
	P50, P99 time.Duration
	// Bytes that an operation brought, if that is of interest.
	Bytes int
	// CPU is the processor time of the side's processes. Rounds fills it in where PIDs are given.
	CPU time.Duration
}

// Rate is operations a second.
func (s Sample) Rate() float64 { return float64(s.Operations) / s.Elapsed.Seconds() }

// CPUPerOperation is the processor time that one operation took; 0 where it was not counted.
func (s Sample) CPUPerOperation() time.Duration {
	if s.Operations == 0 {
		return 0
	}
	return s.CPU / time.Duration(s.Operations)
}

// Plan says how much is measured.
type Plan struct {
	// Rounds that count; one more is done before them, to warm up.
	Rounds int
	// Duration of a side's turn.
	Duration time.Duration
	// Before, if there, is called before each turn, and returns when the side may begin: what another one
	// left to be done, such as a collection of garbage, must not fall to it.
	Before func(context.Context) error
}

// orderSeed makes the orders of a run those of each run.
const orderSeed = 1

// Results are the samples of each side by its name, one a round.
type Results map[string][]Sample

// Rounds has each side do its work once a round. The order is another one each time, and the same in
// each run: what one side leaves behind must not always fall to the same other.
func Rounds(ctx context.Context, plan Plan, sides ...Side) (Results, error) {
	results := Results{}
	orders := rand.New(rand.NewPCG(orderSeed, 0)) //nolint:gosec // an order, not a secret
	for round := -1; round < plan.Rounds; round++ {
		for _, i := range orders.Perm(len(sides)) {
			side := sides[i]
			sample, err := plan.turn(ctx, side)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", side.Name, err)
			}
			if round >= 0 {
				results[side.Name] = append(results[side.Name], sample)
			}
		}
	}
	return results, nil
}

func (p Plan) turn(ctx context.Context, side Side) (Sample, error) {
	if p.Before != nil {
		if err := p.Before(ctx); err != nil {
			return Sample{}, err
		}
	}
	return turn(ctx, side, p.Duration)
}

// Once has a side do its work once, for a comparison that Rounds cannot make.
func Once(ctx context.Context, side Side) (Sample, error) { return turn(ctx, side, 0) }

func turn(ctx context.Context, side Side, duration time.Duration) (Sample, error) {
	pids := side.PIDs
	if side.Children != nil {
		more, err := side.Children()
		if err != nil {
			return Sample{}, err
		}
		pids = append(slices.Clone(pids), more...)
	}
	before := processorTimes(pids)
	sample, err := side.Run(ctx, duration)
	if err != nil {
		return Sample{}, err
	}
	for pid, after := range processorTimes(pids) {
		sample.CPU += after - before[pid]
	}
	return sample, nil
}

// Ratio is how a figure of one side stands to that of another.
type Ratio struct {
	// Median of the rounds, and the Least and Most of them.
	Median, Least, Most float64
}

// Ratio says how many times as fast as the other a side was: its rate over the other's.
func (r Results) Ratio(side, other string) Ratio {
	return r.ratio(side, other, Sample.Rate)
}

// CPURatio says how many times as much processor time the other took for an operation.
func (r Results) CPURatio(side, other string) Ratio {
	return r.ratio(other, side, func(s Sample) float64 { return float64(s.CPUPerOperation()) })
}

func (r Results) ratio(side, other string, figure func(Sample) float64) Ratio {
	var ratios []float64
	for i := range min(len(r[side]), len(r[other])) {
		if below := figure(r[other][i]); below > 0 {
			ratios = append(ratios, figure(r[side][i])/below)
		}
	}
	return Spread(ratios)
}

// Spread of figures; NaN where there are none.
func Spread(figures []float64) Ratio {
	if len(figures) == 0 {
		return Ratio{math.NaN(), math.NaN(), math.NaN()}
	}
	slices.Sort(figures)
	return Ratio{Median: median(figures), Least: figures[0], Most: figures[len(figures)-1]}
}

// Median of a figure of the side's samples; NaN where there are none.
func (r Results) Median(side string, figure func(Sample) float64) float64 {
	var figures []float64
	for _, s := range r[side] {
		figures = append(figures, figure(s))
	}
	return Spread(figures).Median
}

// Rate is the median of the side's operations a second.
func (r Results) Rate(side string) float64 { return r.Median(side, Sample.Rate) }

// P50 is the median of the rounds' medians.
func (r Results) P50(side string) time.Duration {
	return time.Duration(r.Median(side, func(s Sample) float64 { return float64(s.P50) }))
}

// P99 is the median of the rounds' 99th percentiles.
func (r Results) P99(side string) time.Duration {
	return time.Duration(r.Median(side, func(s Sample) float64 { return float64(s.P99) }))
}

// Bytes is the median of what an operation brought.
func (r Results) Bytes(side string) int {
	return int(r.Median(side, func(s Sample) float64 { return float64(s.Bytes) }))
}

// CPU is the median of the processor time that an operation took.
func (r Results) CPU(side string) time.Duration {
	return time.Duration(r.Median(side, func(s Sample) float64 { return float64(s.CPUPerOperation()) }))
}

func median(sorted []float64) float64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
