package main

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// sleep returns an error if the context ends before the time is over.
func sleep(ctx context.Context, wait time.Duration) error {
	harness.Pause(ctx, wait)
	return ctx.Err()
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
