package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// awaitSettled waits until the states of all findings that the imports changed are recorded, and adds the time it took
// to the summaries.
func (o *importOptions) awaitSettled(ctx context.Context, session *session, summaries []*importer.Summary) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if !o.quiet {
		fmt.Fprintln(o.streams.ErrOut, "waiting until all states are recorded")
	}
	for _, s := range summaries {
		if s.Scan == "" {
			continue
		}
		scan := &v1alpha1.Scan{}
		scan.Name = s.Scan
		err := session.await(ctx, scan, func() (bool, error) {
			s.SettledAt = scan.SettledAt()
			return s.SettledAt != nil, nil
		})
		switch {
		case err == nil:
		case errors.Is(ctx.Err(), context.DeadlineExceeded): // not err, because a single request has a deadline, too
			return fmt.Errorf("the import is complete, but not all states were recorded within %s: see %s",
				o.timeout, session.command("wait", "--for=condition="+v1alpha1.ConditionSettled, "scan/"+s.Scan))
		case errors.Is(ctx.Err(), context.Canceled):
			return fmt.Errorf("the import is complete, but the wait until all states are recorded was interrupted: %w", err)
		default:
			return fmt.Errorf("the import is complete, but scan %s cannot be read to see whether all states are recorded: %w",
				s.Scan, err)
		}
	}
	return nil
}
