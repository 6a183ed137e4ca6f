package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/dataset"
	"github.com/appsec-dev/findings-operator/bench/internal/plane"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const (
	settleTimeout  = 10 * time.Minute
	settleInterval = 200 * time.Millisecond
)

// settle runs the controllers over the fixture until they have reconciled everything. It returns
// the number of objects they wrote, and the times from their start until they were done and until
// they were ready.
func settle(ctx context.Context, f *bench.Fixture) (written int, looked, ready time.Duration, err error) {
	revision, err := dataset.Revision(ctx, f.EtcdURL())
	if err != nil {
		return 0, 0, 0, err
	}
	began := time.Now()
	if err := f.StartController(ctx); err != nil {
		return 0, 0, 0, err
	}
	defer func() { err = errors.Join(err, f.StopController()) }()
	ready = f.Controller.Readied
	if err := waitIdle(ctx, f); err != nil {
		return 0, 0, 0, err
	}
	looked = time.Since(began)
	for _, kind := range kinds {
		n, err := dataset.WrittenSince(ctx, f.EtcdURL(), revision, f.Organization.Namespace, kind)
		if err != nil {
			return 0, 0, 0, err
		}
		written += n
	}
	return written, looked, ready, nil
}

// waitIdle returns once the controllers have reconciled each finding and their queues are empty.
func waitIdle(ctx context.Context, f *bench.Fixture) error {
	return eventually(ctx, settleInterval, settleTimeout, func(ctx context.Context) error { return checkIdle(ctx, f) })
}

func checkIdle(ctx context.Context, f *bench.Fixture) error {
	metrics, err := f.Controller.Metrics(ctx)
	if err != nil {
		return err
	}
	depth, errDepth := harness.Sum(metrics, "workqueue_depth", nil)
	busy, errBusy := harness.Sum(metrics, "workqueue_unfinished_work_seconds", nil)
	reconciled, errReconciled := findingReconciles(metrics)
	switch {
	case errors.Join(errDepth, errBusy, errReconciled) != nil:
		return errors.Join(errDepth, errBusy, errReconciled)
	case depth > 0:
		return fmt.Errorf("%.0f objects wait", depth)
	case busy > 0:
		return errors.New("an object is being worked on")
	case reconciled < float64(f.Size):
		return fmt.Errorf("%.0f of %d findings were looked at", reconciled, f.Size)
	}
	return nil
}

// reconciledBy returns how often the controllers have reconciled findings.
func reconciledBy(ctx context.Context, controllers *plane.Process) (float64, error) {
	metrics, err := controllers.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	return findingReconciles(metrics)
}

// findingReconciles returns the number of reconciles of findings in the controllers' metrics.
func findingReconciles(metrics string) (float64, error) {
	return harness.Sum(metrics, "controller_runtime_reconcile_total", map[string]string{"controller": "finding"})
}
