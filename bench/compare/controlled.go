package main

import (
	"context"
	"errors"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
)

// controlled is a fixture with controllers over it, which have nothing left to do, and can be halted.
type controlled struct {
	*bench.Fixture
	halted bool
}

// withControllers starts the controllers over the fixture. Whoever asked calls stop.
func withControllers(ctx context.Context, f *bench.Fixture) (*controlled, error) {
	if err := f.StartController(ctx); err != nil {
		return nil, err
	}
	if err := waitIdle(ctx, f); err != nil {
		return nil, errors.Join(err, f.StopController())
	}
	return &controlled{Fixture: f}, nil
}

// halt stops the controllers' process without ending it: what they would do begins when they go on.
// Starting them anew instead would have them look at every finding each time.
func (c *controlled) halt() error {
	c.halted = true
	return syscall.Kill(c.Controller.PID(), syscall.SIGSTOP)
}

// goOn lets the controllers' process go on.
func (c *controlled) goOn() error {
	if !c.halted {
		return nil
	}
	c.halted = false
	return syscall.Kill(c.Controller.PID(), syscall.SIGCONT)
}

// stop ends the controllers.
func (c *controlled) stop() error { return errors.Join(c.goOn(), c.StopController()) }

// eventually tries until it works, and says what was the matter last where it does not.
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
