package main

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/appsec-dev/findings-operator/bench/internal/measure"
)

// callFor runs n callers for the duration; each calls again as soon as it is answered. The i-th
// caller's numbers are i, i+n, i+2n and so on, so that no two callers share a number. Each calls
// once before the clock starts, as package load's connections do.
func callFor(ctx context.Context, n int, duration time.Duration, call func(ctx context.Context,
	number int) error) (measure.Sample, error) {
	if err := each(ctx, n, func(ctx context.Context, i int) error { return call(ctx, i) }); err != nil {
		return measure.Sample{}, err
	}
	taken := make([][]time.Duration, n)
	start := time.Now()
	err := each(ctx, n, func(ctx context.Context, i int) error {
		for number := i + n; time.Since(start) < duration; number += n {
			began := time.Now()
			if err := call(ctx, number); err != nil {
				return err
			}
			taken[i] = append(taken[i], time.Since(began))
		}
		return nil
	})
	return measure.SampleOf(slices.Concat(taken...), time.Since(start)), err
}

// callAll makes the given number of calls with n concurrent callers.
func callAll(ctx context.Context, n, calls int, call func(ctx context.Context,
	number int) error) (measure.Sample, error) {
	taken := make([]time.Duration, calls)
	start := time.Now()
	err := each(ctx, n, func(ctx context.Context, i int) error {
		for number := i; number < calls; number += n {
			began := time.Now()
			if err := call(ctx, number); err != nil {
				return err
			}
			taken[number] = time.Since(began)
		}
		return nil
	})
	return measure.SampleOf(taken, time.Since(start)), err
}

// each runs do n times concurrently, and returns the first error.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
