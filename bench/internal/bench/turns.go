package bench

import (
	"context"
	"maps"
	"slices"

	"github.com/appsec-dev/findings-operator/bench/internal/measure"
)

// Compare runs the sides in the rounds of the plan. Each turn begins when all control planes are
// idle.
func (b *Bench) Compare(ctx context.Context, sides ...measure.Side) (measure.Results, error) {
	plan := b.Plan
	plan.Before = func(ctx context.Context) error { return b.Calm(ctx) }
	return measure.Rounds(ctx, plan, sides...)
}

// CompareCollected is Compare for sides that leave much garbage in kube-apiserver: before each turn the
// garbage is collected.
func (b *Bench) CompareCollected(ctx context.Context, f *Fixture, sides ...measure.Side) (measure.Results, error) {
	plan := b.Plan
	plan.Before = func(ctx context.Context) error { return b.Collected(ctx, f) }
	return measure.Rounds(ctx, plan, sides...)
}

// Calm returns when all shared control planes and those of the given fixtures are idle. After sending a hundred pages,
// kube-apiserver collects garbage for seconds.
func (b *Bench) Calm(ctx context.Context, fixtures ...*Fixture) error {
	var pids []int
	for _, f := range slices.AppendSeq(fixtures, maps.Values(b.fixtures)) {
		pids = slices.AppendSeq(pids, maps.Values(f.PIDs()))
	}
	slices.Sort(pids)
	return measure.AwaitIdle(ctx, slices.Compact(pids))
}

// Collected returns when the fixture's kube-apiserver has collected its garbage, and the fixture and all shared
// control planes are idle.
func (b *Bench) Collected(ctx context.Context, f *Fixture) error {
	if err := collectGarbage(ctx, f.Config, 1); err != nil {
		return err
	}
	return b.Calm(ctx, f)
}
