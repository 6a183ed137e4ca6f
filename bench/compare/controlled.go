package main

import (
	"context"
	"errors"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

// controlled is a fixture with idle controllers, which can be halted.
type controlled struct {
	*bench.Fixture
	halted bool
}

// withControllers starts the controllers, with further flags, over the fixture. The caller calls stop.
func withControllers(ctx context.Context, f *bench.Fixture, flags ...string) (*controlled, error) {
	if err := f.StartController(ctx, flags...); err != nil {
		return nil, err
	}
	if err := waitIdle(ctx, f); err != nil {
		return nil, errors.Join(err, f.StopController())
	}
	return &controlled{Fixture: f}, nil
}

// controlledSection returns the measurement over the largest fixture with its controllers started.
func controlledSection(measured func(context.Context, *bench.Bench, *controlled) (*report.Section, error)) func(context.Context,
	*bench.Bench) (*report.Section, error) {
	return func(ctx context.Context, b *bench.Bench) (section *report.Section, err error) {
		f, err := b.Fixture(ctx, b.Largest())
		if err != nil {
			return nil, err
		}
		c, err := withControllers(ctx, f)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, c.stop()) }()
		return measured(ctx, b, c)
	}
}

// halt freezes the controllers' process: their work waits until they go on. Restarting them instead
// would make them reconcile every finding each time.
func (c *controlled) halt() error {
	c.halted = true
	return syscall.Kill(c.Controller.PID(), syscall.SIGSTOP)
}

// goOn resumes the controllers' process.
func (c *controlled) goOn() error {
	if !c.halted {
		return nil
	}
	c.halted = false
	return syscall.Kill(c.Controller.PID(), syscall.SIGCONT)
}

// stop ends the controllers.
func (c *controlled) stop() error { return errors.Join(c.goOn(), c.StopController()) }

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
