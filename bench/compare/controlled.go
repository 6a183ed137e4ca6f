package main

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

// withControllers starts the controllers, with further flags, over the fixture, and waits until they are idle. The
// caller calls stop; the controllers may be frozen then.
func withControllers(ctx context.Context, f *bench.Fixture, flags ...string) (stop func() error, err error) {
	if err := f.StartController(ctx, flags...); err != nil {
		return nil, err
	}
	if err := waitIdle(ctx, f); err != nil {
		return nil, errors.Join(err, f.StopController())
	}
	return func() error { return errors.Join(f.Controller.Thaw(), f.StopController()) }, nil
}

// controlledSection returns the measurement over the largest fixture with its controllers started.
func controlledSection(measured func(context.Context, *bench.Bench, *bench.Fixture) (*report.Section, error)) func(context.Context,
	*bench.Bench) (*report.Section, error) {
	return func(ctx context.Context, b *bench.Bench) (section *report.Section, err error) {
		f, err := b.Fixture(ctx, b.Largest())
		if err != nil {
			return nil, err
		}
		stop, err := withControllers(ctx, f)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, stop()) }()
		return measured(ctx, b, f)
	}
}

// eventually polls until try succeeds; on a timeout it returns the last error.
func eventually(ctx context.Context, interval, timeout time.Duration, try func(context.Context) error) error {
	last := errors.New("not tried")
	err := wait.PollUntilContextTimeout(ctx, interval, timeout, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}
