package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// settleInterval is how often a scan is read: scanners may not watch.
const settleInterval = time.Second

// awaitSettled waits until the states of all findings that the imports changed are recorded, and adds that time to the
// summaries.
func (o *importOptions) awaitSettled(ctx context.Context, c client.Reader, namespace string,
	summaries []*importer.Summary) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if !o.quiet {
		fmt.Fprintln(o.streams.ErrOut, "waiting until all states are recorded")
	}
	for _, s := range summaries {
		if s.Scan == "" {
			continue
		}
		err := wait.PollUntilContextCancel(ctx, settleInterval, true, func(ctx context.Context) (bool, error) {
			var err error
			s.SettledAt, err = settledAt(ctx, c, client.ObjectKey{Namespace: namespace, Name: s.Scan})
			return s.SettledAt != nil, err
		})
		switch {
		case err == nil:
		case errors.Is(ctx.Err(), context.DeadlineExceeded): // not err: a single request has a deadline too
			return fmt.Errorf("the import is complete, but not all states were recorded within %s: see kubectl wait --for=condition=%s scan/%s -n %s",
				o.timeout, v1alpha1.ConditionSettled, s.Scan, namespace)
		case errors.Is(ctx.Err(), context.Canceled):
			return fmt.Errorf("the import is complete, but the wait until all states are recorded was interrupted: %w", err)
		default:
			return fmt.Errorf("the import is complete, but scan %s cannot be read to see whether all states are recorded: %w",
				s.Scan, err)
		}
	}
	return nil
}

// settledAt returns since when the scan is settled; nil if it is not.
func settledAt(ctx context.Context, c client.Reader, key client.ObjectKey) (*v1alpha1.Time, error) {
	scan := &v1alpha1.Scan{}
	if err := importer.Retry(ctx, func(ctx context.Context) error { return c.Get(ctx, key, scan) }); err != nil {
		return nil, err
	}
	return scan.SettledAt(), nil
}
