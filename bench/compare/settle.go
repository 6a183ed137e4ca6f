package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/dataset"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const (
	settleTimeout  = 10 * time.Minute
	settleInterval = 200 * time.Millisecond
)

// settlement is what controllers do that are started on loaded data, until they have reconciled everything.
type settlement struct {
	// written is the number of objects that they write.
	written int
	// looked and ready are the times from their start until they are done and until they are ready.
	looked, ready time.Duration
	// memory is that of all processes when they are done.
	memory map[string]measure.Memory
}

// settle runs the controllers over the fixture until they have reconciled everything.
func settle(ctx context.Context, f *bench.Fixture) (s *settlement, err error) {
	revision, err := dataset.Revision(ctx, f.EtcdURL())
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := f.StartController(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.StopController()) }()
	if err := waitIdle(ctx, f); err != nil {
		return nil, err
	}
	s = &settlement{ready: f.Controller.Readied, looked: time.Since(began)}
	if s.memory, err = f.Memory(); err != nil { // before etcd reads everything below
		return nil, err
	}
	for _, kind := range kinds {
		written, err := dataset.RevisionsSince(ctx, f.EtcdURL(), revision, f.Organization.Namespace, kind)
		if err != nil {
			return nil, err
		}
		s.written += len(written)
	}
	return s, nil
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
func reconciledBy(ctx context.Context, controllers *harness.Component) (float64, error) {
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
