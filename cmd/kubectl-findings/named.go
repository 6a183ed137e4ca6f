package main

import (
	"context"
	"errors"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// decideNamed decides about the named findings, each with a request in the user's own name.
func (o *triageOptions) decideNamed(ctx context.Context, t *triager, names []string, summary *bulkSummary) error {
	names = distinct(names)
	progress := newProgress(o.streams.ErrOut, o.quiet, "findings")
	endings := forEach(ctx, len(names), o.concurrency, progress.at, func(i int) (bool, error) {
		return t.decideAbout(ctx, names[i])
	})
	progress.finish()
	summary.count(names, endings)
	return errors.Join(summary.print(o.streams.Out, o.output), explainFirst(ctx, t.session, names, endings, summary.err(),
		need{what: "triage findings", role: roleTriager, kind: "Finding"}))
}

// triager writes the same decision to findings.
type triager struct {
	session  *session
	decision decision
	dryRun   string
}

// decideAbout writes the decision to one finding, if it changes anything there.
func (t *triager) decideAbout(ctx context.Context, name string) (changed bool, err error) {
	err = patiently(ctx, func() error {
		f := &v1alpha1.Finding{}
		if err := t.session.get(ctx, name, f); err != nil {
			return err
		}
		if !t.decision.changes(verdictOf(f)) {
			return nil
		}
		if err := t.write(ctx, f); err != nil {
			return err
		}
		changed = true
		return nil
	})
	return changed, err
}

func (t *triager) write(ctx context.Context, f *v1alpha1.Finding) error {
	if t.dryRun == dryRunClient {
		return nil
	}
	patch, err := t.decision.patch(verdictOf(f), f.ResourceVersion)
	if err != nil {
		return err
	}
	var options []client.PatchOption
	if t.dryRun == dryRunServer {
		options = append(options, client.DryRunAll)
	}
	return t.session.patch(ctx, f, patch, options...)
}

// distinct returns the names sorted, without duplicates.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
