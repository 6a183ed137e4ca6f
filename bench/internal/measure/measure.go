// Package measure compares things that do the same work, in rounds in which each has its turn.
//
// The speed of a shared machine varies, so the figures of one side alone mean little. Within a
// round all sides run under nearly the same conditions: what counts is the ratio within each round,
// and the median of these ratios.
package measure

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Side is one of the things that are compared.
type Side struct {
	// Name identifies its results.
	Name string
	// Run does the work once, for about the given duration.
	Run func(ctx context.Context, duration time.Duration) (Sample, error)
	// PIDs of the processes that do the work, if their processor time is to be counted.
	PIDs []int
	// Children, if not nil, finds further processes before each turn: those of a server that has a
	// process per connection.
	Children func() ([]int, error)
}

// Sample holds the figures of a side in a round.
type Sample struct {
	// Operations that were done in Elapsed.
	Operations int
	Elapsed    time.Duration
	// P50 and P99 are quantiles of the duration of an operation.
	P50, P99 time.Duration
	// Bytes is the size of an operation's answer, where that is of interest.
	Bytes int
	// CPU is the processor time of the side's processes, if PIDs are given.
	CPU time.Duration
}

// SampleOf returns the sample of operations that took these times.
func SampleOf(taken []time.Duration, elapsed time.Duration) Sample {
	slices.Sort(taken)
	return Sample{Operations: len(taken), Elapsed: elapsed, P50: Quantile(taken, 0.5), P99: Quantile(taken, 0.99)}
}

// Quantile returns a quantile of figures in ascending order; 0 if there are no figures.
func Quantile[T time.Duration | int](sorted []T, q float64) T {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// Rate returns the operations per second.
func (s Sample) Rate() float64 { return float64(s.Operations) / s.Elapsed.Seconds() }

// CPUPerOperation returns the processor time per operation; 0 if it was not counted.
func (s Sample) CPUPerOperation() time.Duration {
	if s.Operations == 0 {
		return 0
	}
	return s.CPU / time.Duration(s.Operations)
}

// Plan sets how much is measured.
type Plan struct {
	// Rounds is the number of rounds that count; one more precedes them as a warm-up.
	Rounds int
	// Duration of a side's turn.
	Duration time.Duration
	// Before, if not nil, is called before each turn, and returns when the side may begin: work left by
	// another side, such as a garbage collection, must not slow it down.
	Before func(context.Context) error
}

// orderSeed makes the orders the same in every run.
const orderSeed = 1

// Results holds the samples of each side by its name, one per round.
type Results map[string][]Sample

// Add adds the samples of one round, by side.
func (r Results) Add(round map[string]Sample) {
	for side, sample := range round {
		r[side] = append(r[side], sample)
	}
}

// Rounds runs each side once per round. The order differs between rounds, but is the same in every
// run: what one side leaves behind must not always burden the same other side.
func Rounds(ctx context.Context, plan Plan, sides ...Side) (Results, error) {
	results := Results{}
	orders := rand.New(rand.NewPCG(orderSeed, 0)) //nolint:gosec // an order, not a secret
	for round := -1; round < plan.Rounds; round++ {
		for _, i := range orders.Perm(len(sides)) {
			side := sides[i]
			if plan.Before != nil {
				if err := plan.Before(ctx); err != nil {
					return nil, fmt.Errorf("%s: %w", side.Name, err)
				}
			}
			sample, err := Turn(ctx, side, plan.Duration)
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

// Once does the work once, for a comparison that Rounds cannot make, and counts the processor time of the processes.
// The work returns how many operations it did.
func Once(ctx context.Context, pids []int, work func(context.Context) (int, error)) (Sample, error) {
	side := Side{PIDs: pids, Run: func(ctx context.Context, _ time.Duration) (Sample, error) {
		began := time.Now()
		operations, err := work(ctx)
		return Sample{Operations: operations, Elapsed: time.Since(began)}, err
	}}
	return Turn(ctx, side, 0)
}

// Turn runs a side once.
func Turn(ctx context.Context, side Side, duration time.Duration) (Sample, error) {
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

// Ratio is the ratio of a figure of one side to that of another.
type Ratio struct {
	// Median is the median of the rounds; Least and Most are their extremes.
	Median, Least, Most float64
}

// Ratio returns how many times as fast as the other a side was: its rate divided by the other's.
func (r Results) Ratio(side, other string) Ratio {
	return r.ratio(side, other, Sample.Rate)
}

// CPURatio returns how many times as much processor time per operation the other side took.
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

// Spread returns the median and the extremes of figures; NaN if there are no figures.
func Spread(figures []float64) Ratio {
	if len(figures) == 0 {
		return Ratio{math.NaN(), math.NaN(), math.NaN()}
	}
	slices.Sort(figures)
	return Ratio{Median: median(figures), Least: figures[0], Most: figures[len(figures)-1]}
}

// Median returns the median of a figure of the side's samples; NaN if there are no samples.
func (r Results) Median(side string, figure func(Sample) float64) float64 {
	var figures []float64
	for _, s := range r[side] {
		figures = append(figures, figure(s))
	}
	return Spread(figures).Median
}

// Rate returns the median of the side's operations per second.
func (r Results) Rate(side string) float64 { return r.Median(side, Sample.Rate) }

// P50 returns the median of the rounds' medians.
func (r Results) P50(side string) time.Duration {
	return time.Duration(r.Median(side, func(s Sample) float64 { return float64(s.P50) }))
}

// P99 returns the median of the rounds' 99th percentiles.
func (r Results) P99(side string) time.Duration {
	return time.Duration(r.Median(side, func(s Sample) float64 { return float64(s.P99) }))
}

// Bytes returns the median size of an operation's answer.
func (r Results) Bytes(side string) int {
	return int(r.Median(side, func(s Sample) float64 { return float64(s.Bytes) }))
}

// CPU returns the median processor time per operation.
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
