package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/bench/internal/dataset"
)

// The situations that are checked for unexpected writes.
const (
	atRest         = "with a policy in force"
	noneMatch      = "after a policy that matches nothing"
	noneNewMatches = "after a policy that matches what another decides"
	afterOperation = "after an operation"
)

// policyAtRest checks what is written while a policy is in force and nothing changes, and when policies are created
// that decide about no further finding.
func (m *many) policyAtRest(ctx context.Context) error {
	if err := m.recordWrites(ctx, atRest, "", func(context.Context) error { return nil }); err != nil {
		return err
	}
	nothing := m.policy("bench-nothing", 0)
	nothing.Spec.Match = "finding.tool == 'none'"
	for what, policy := range map[string]*v1alpha1.TriagePolicy{
		noneMatch: nothing, noneNewMatches: m.policy("bench-shadowed", 0),
	} {
		object := "triagepolicies/" + m.Organization.Namespace + "/" + policy.Name
		create := func(ctx context.Context) error { return m.Client.Create(ctx, policy) }
		if err := m.recordWrites(ctx, what, object, create); err != nil {
			return err
		}
	}
	return nil
}

// recordWrites records the objects that are written from a change until some time after it, except for the given one.
// Earlier work must settle first: policies recount some seconds after findings have changed, and the use of keys is
// recorded once a minute.
func (m *many) recordWrites(ctx context.Context, what, but string, change func(context.Context) error) error {
	m.bench.Say("triage: what is written %s", what)
	if err := m.awaitNoWrites(ctx); err != nil {
		return err
	}
	revision, err := dataset.Revision(ctx, m.EtcdURL())
	if err != nil {
		return err
	}
	if err := change(ctx); err != nil {
		return err
	}
	if err := sleep(ctx, restFor); err != nil {
		return err
	}
	if but != "" {
		if err := m.awaitNoWrites(ctx); err != nil {
			return err
		}
	}
	written, err := dataset.AllSince(ctx, m.EtcdURL(), revision)
	if err != nil {
		return err
	}
	if but != "" && !slices.Contains(written, but) {
		return fmt.Errorf("%s has no status", but)
	}
	m.written[what] = slices.DeleteFunc(written, func(name string) bool { return name == but })
	return nil
}

// recounted returns how long after a change the policies have counted again: the longer a count takes, the later
// they start it.
func (m *many) recounted() time.Duration {
	return 5*time.Second + time.Duration(m.Size)*400*time.Microsecond
}

// awaitNoWrites returns when the controllers have not written for a while.
func (m *many) awaitNoWrites(ctx context.Context) error {
	if err := waitIdle(ctx, m.Fixture); err != nil {
		return err
	}
	return eventually(ctx, manyInterval, settleTimeout, func(ctx context.Context) error {
		revision, err := dataset.Revision(ctx, m.EtcdURL())
		if err != nil {
			return err
		}
		if err := sleep(ctx, m.recounted()); err != nil {
			return err
		}
		written, err := dataset.AllSince(ctx, m.EtcdURL(), revision)
		if err == nil && len(written) > 0 {
			err = fmt.Errorf("%d objects are still being written, as %s", len(written), written[0])
		}
		return err
	})
}
