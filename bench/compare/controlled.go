package main

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

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

// removeAll removes the organization's objects of the kinds that the options select. Deleting many takes longer than
// the API server's request timeout.
func removeAll(ctx context.Context, f *bench.Fixture, kinds []client.Object, options ...client.DeleteAllOfOption) error {
	options = append(options, client.InNamespace(f.Organization.Namespace))
	for _, kind := range kinds {
		if err := eventually(ctx, settleInterval, caughtUp, func(ctx context.Context) error {
			return f.Client.DeleteAllOf(ctx, kind, options...)
		}); err != nil {
			return err
		}
	}
	return nil
}

// servers returns the process IDs of kube-apiserver and etcd.
func servers(f *bench.Fixture) []int {
	pids := f.PIDs()
	return []int{pids["kube-apiserver"], pids["etcd"]}
}
