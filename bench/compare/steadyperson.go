package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
)

// steadyPerson decides through the REST API about one finding after the other at a steady pace, and observes what
// follows from each decision. No finding is decided twice.
type steadyPerson struct {
	*bench.Fixture
	people   *people
	findings []string
	// count is the number of decisions in a phase, and pause the time from one to the next.
	count int
	pause time.Duration

	watch *bareWatch
	// receiver is slower than the controllers make deliveries, so that those of an import queue up.
	receiver  *receiver
	delivered *arrivals

	lock sync.Mutex
	// created holds when the deliveries of new findings arrived.
	created []time.Time
}

// followed holds what followed from one decision, from the time when its PATCH was sent.
type followed struct {
	answered, shown, recorded, delivered time.Duration
	// overtaken is how many deliveries of new findings arrived before the decision's.
	overtaken int
}

// newSteadyPerson also creates a webhook endpoint that gets all events of findings. The caller calls close.
func newSteadyPerson(ctx context.Context, f *bench.Fixture, short bool) (p *steadyPerson, err error) {
	p = &steadyPerson{Fixture: f, count: steadyDecisions, pause: steadyPause}
	if short {
		p.count, p.pause = steadyInShort, steadyShortPause
	}
	if p.findings, err = findingNames(f, f.Size); err != nil {
		return nil, err
	}
	p.count = min(p.count, (len(p.findings)-warmUpDecisions)/2)
	p.people = newPeople(f, p.findings)
	watcher, err := newTriager(ctx, f.Plane, f.Organization.Namespace, "kubectl-patch")
	if err != nil {
		return nil, err
	}
	p.delivered = newArrivals("a webhook", underPatience)
	if p.receiver, err = newReceiver(ctx, receiverTakes, p.got); err != nil {
		return nil, err
	}
	if p.watch, err = watchBare(ctx, watcher, asRecorded, underPatience); err != nil {
		return nil, errors.Join(err, p.receiver.close())
	}
	if err := makeEndpoint(ctx, f, "bench-steady", p.receiver.url(0), "finding.*"); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *steadyPerson) close() error {
	p.watch.stop()
	p.people.client.CloseIdleConnections()
	return p.receiver.close()
}

// got observes a delivery.
func (p *steadyPerson) got(payload []byte, at time.Time) {
	var event struct {
		Type string
		Data struct {
			Finding string `json:"finding_id"`
		}
	}
	if err := json.Unmarshal(payload, &event); err != nil {
		return // whoever expects it reports that it is missing
	}
	switch event.Type {
	case "finding.triaged":
		p.delivered.came(event.Data.Finding, at)
	case "finding.created":
		p.lock.Lock()
		defer p.lock.Unlock()
		p.created = append(p.created, at)
	}
}

// next returns the next findings to decide about.
func (p *steadyPerson) next(count int) []string {
	findings := p.findings[:count]
	p.findings = p.findings[count:]
	return findings
}

// decide decides about the findings until over is closed, and waits for what follows. A nil channel is never closed.
func (p *steadyPerson) decide(ctx context.Context, findings []string, over <-chan struct{}) ([]followed, error) {
	out := make([]followed, len(findings))
	pace := time.NewTicker(p.pause)
	defer pace.Stop()
	following, ctx := errgroup.WithContext(ctx)
	made := 0
	for ; made < len(findings); made++ {
		select {
		case <-over:
			return out[:made], following.Wait()
		case <-ctx.Done():
			return nil, errors.Join(following.Wait(), ctx.Err())
		case <-pace.C:
		}
		if err := p.follow(ctx, following, newDecision(findings, "a steady series", made), &out[made]); err != nil {
			return nil, errors.Join(err, following.Wait())
		}
	}
	return out, following.Wait()
}

// follow sends the decision and reads the finding. Meanwhile, and in the group afterwards, it waits for the status and
// the delivery.
func (p *steadyPerson) follow(ctx context.Context, group *errgroup.Group, d decision, out *followed) error {
	recorded, delivered := p.watch.expect(d), p.delivered.expect(d.finding)
	sent := time.Now()
	group.Go(func() error {
		at, err := recorded(ctx)
		out.recorded = at.Sub(sent)
		return err
	})
	group.Go(func() error {
		at, err := delivered(ctx)
		out.delivered, out.overtaken = at.Sub(sent), p.createdBetween(sent, at)
		return err
	})
	if err := p.people.store(ctx, d, 0); err != nil {
		return err
	}
	out.answered = time.Since(sent)
	err := awaitShown(ctx, p.Fixture, findingPath(d.finding), []byte(d.comments))
	out.shown = time.Since(sent)
	return err
}

func (p *steadyPerson) createdBetween(from, to time.Time) (count int) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, at := range p.created {
		if at.After(from) && at.Before(to) {
			count++
		}
	}
	return count
}

// awaitCreated returns when the deliveries of so many new findings have arrived.
func (p *steadyPerson) awaitCreated(ctx context.Context, count int) error {
	return eventually(ctx, settleInterval, underPatience, func(context.Context) error {
		p.lock.Lock()
		defer p.lock.Unlock()
		if len(p.created) < count {
			return fmt.Errorf("of %d deliveries of new findings %d have arrived", count, len(p.created))
		}
		return nil
	})
}
