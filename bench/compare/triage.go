package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/dataset"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/bench/internal/report"
)

const (
	// peoplesFindings is the number of findings that people decide about, in addition to those of a
	// policy.
	peoplesFindings = 16 * peopleCount
	// verdictWriters is how many findings the controllers reconcile concurrently by default, and operationWriters how
	// many findings an operation decides about concurrently.
	verdictWriters   = 2
	operationWriters = 4
	// manyTimeout bounds a policy or an operation, and manyInterval is the pause between two polls.
	manyTimeout  = time.Hour
	manyInterval = 100 * time.Millisecond
	// quietFor is how long people decide alone, and restFor how long nothing may be written.
	quietFor = 15 * time.Second
	restFor  = 10 * time.Second

	manyPolicy = "bench-many"
	manyReason = v1alpha1.DecisionUsedInTests
	manyNote   = "Decided for many findings at a time by a comparison, which is a comment of about usual length."
)

// The names of the turns.
const (
	aloneTurn        = "people alone"
	bareStatusTurn   = "bare status writes"
	policyTurn       = "a policy"
	bareDecisionTurn = "bare patches of `spec.triage`"
	operationTurn    = "an operation"
)

// triage compares a policy and an operation over many findings with the same number of bare writes.
func triage(ctx context.Context, b *bench.Bench) (section *report.Section, err error) {
	f, err := b.OwnFixture(ctx, dataset.Options{Findings: b.Triaged + peoplesFindings, Undecided: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	m := newMany(b, f)
	defer m.people.client.CloseIdleConnections()
	if err := m.comparePolicy(ctx); err != nil {
		return nil, fmt.Errorf("a policy: %w", err)
	}
	if err := m.compareOperation(ctx); err != nil {
		return nil, fmt.Errorf("an operation: %w", err)
	}
	return m.section(), nil
}

// manyFinding is a finding of the fixture.
type manyFinding struct {
	index int
	name  string
	found time.Time
}

// many holds the findings that are decided about.
type many struct {
	*bench.Fixture
	bench  *bench.Bench
	people *people
	// ofPolicy are the findings that the policy matches. The operation selects ofOperation of them, and the
	// plain client patches ofPatches of them, at most as many.
	ofPolicy, ofOperation, ofPatches []manyFinding
	// policySince and operationSince are the detection times of the first finding of each.
	policySince, operationSince time.Time

	turns map[string][]manyTurn
	// written lists the objects that were written when no write was expected, by action.
	written map[string][]string
}

// manyTurn holds the figures of a turn and of the people during it.
type manyTurn struct {
	measure.Sample
	// cpu is the processor time of the whole turn, by process.
	cpu    map[string]time.Duration
	people measure.Sample
	// again is how many of the people's PATCHes had to be retried.
	again int64
	// followed is the time until the controllers had nothing left to do.
	followed time.Duration
}

func newMany(b *bench.Bench, f *bench.Fixture) *many {
	m := &many{Fixture: f, bench: b, turns: map[string][]manyTurn{}, written: map[string][]string{}}
	all := make([]manyFinding, f.Size)
	for i := range all {
		finding := f.Data.Finding(i)
		all[i] = manyFinding{i, finding.Name, finding.Spec.DetectedAt.Time}
	}
	slices.SortFunc(all, func(a, b manyFinding) int { return a.found.Compare(b.found) })
	// Policy and operation select by detection time: earlier findings belong to others.
	begin := from(all, peoplesFindings)
	m.ofPolicy, m.policySince = all[begin:], all[begin].found
	half := from(m.ofPolicy, len(m.ofPolicy)-min(len(m.ofPolicy)/2, v1alpha1.MaxOperationFindings))
	m.ofOperation, m.operationSince = m.ofPolicy[half:], m.ofPolicy[half].found
	m.ofPatches = m.ofPolicy[max(0, half-len(m.ofOperation)):half]
	var names []string
	for _, finding := range all[:peoplesFindings] {
		names = append(names, finding.name)
	}
	m.people = newPeople(f, names)
	return m
}

// from returns the first index, from index on, of a finding that was detected later than its
// predecessor.
func from(findings []manyFinding, index int) int {
	for index > 0 && index < len(findings)-1 && findings[index].found.Equal(findings[index-1].found) {
		index++
	}
	return index
}

// underControllers restores the findings, starts the controllers, has people decide alone for a while, and then runs
// the work.
func (m *many) underControllers(ctx context.Context, work func(context.Context) error) (err error) {
	if err := m.restore(ctx); err != nil {
		return err
	}
	stop, err := withControllers(ctx, m.Fixture)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := m.decideAlone(ctx); err != nil {
		return err
	}
	return work(ctx)
}

// restore puts everything into etcd in its original state, and has people decide about their
// findings.
func (m *many) restore(ctx context.Context) error {
	if _, err := m.Data.Into(ctx, m.EtcdURL()); err != nil {
		return err
	}
	if err := m.bench.Collected(ctx, m.Fixture); err != nil {
		return err
	}
	return m.people.begin(ctx)
}

// turn does the work while people decide, beginning with an idle control plane.
func (m *many) turn(ctx context.Context, name string, count int, work func(context.Context) error) error {
	m.bench.Say("triage: %s, %d", name, count)
	if err := m.bench.Collected(ctx, m.Fixture); err != nil {
		return err
	}
	var took time.Duration
	m.people.again.Store(0)
	before, began := m.ProcessorTimes(), time.Now()
	people, err := m.people.beside(ctx, func(ctx context.Context) error {
		defer func() { took = time.Since(began) }()
		return work(ctx)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	done := manyTurn{Sample: measure.Sample{Operations: count, Elapsed: took}, cpu: m.ProcessorTimes(), people: people,
		again: m.people.again.Load()}
	for process := range done.cpu {
		done.cpu[process] -= before[process]
	}
	m.bench.Say("triage: %s: %.0f/s; processor time %v; people's PATCHes: %d (%d again), p50 %s, p99 %s", name,
		done.Rate(), done.cpu, people.Operations, done.again, milliseconds(people.P50), milliseconds(people.P99))
	if count > 0 {
		if err := waitIdle(ctx, m.Fixture); err != nil {
			return err
		}
		done.followed = time.Since(began)
	}
	m.turns[name] = append(m.turns[name], done)
	return nil
}

// decideAlone has people decide while no other work is done.
func (m *many) decideAlone(ctx context.Context) error {
	quiet := quietFor
	if m.bench.Short {
		quiet /= 10
	}
	return m.turn(ctx, aloneTurn, 0, func(ctx context.Context) error { return sleep(ctx, quiet) })
}
