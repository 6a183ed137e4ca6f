package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
)

const (
	// peopleCount is how many people decide concurrently, and personPause how long each looks at the next finding.
	peopleCount = 20
	personPause = time.Second
	// personTimeout is longer than any acceptable wait, and personAgain is the pause before a
	// person's retry.
	personTimeout = 2 * time.Minute
	personAgain   = 100 * time.Millisecond
)

// people decide about single findings through the REST API, each about their own findings.
type people struct {
	fixture  *bench.Fixture
	client   *http.Client
	findings []string
	// series counts the passes over the findings, so that no decision repeats an earlier one; next is the number of
	// each person's next decision.
	series int
	next   [peopleCount]int
	// again counts the answers that asked for a retry: a person retries until the decision is stored.
	again atomic.Int64
}

// newPeople returns people for these findings, whose number must be a multiple of peopleCount.
func newPeople(f *bench.Fixture, findings []string) *people {
	return &people{fixture: f, findings: findings, client: &http.Client{
		Timeout: personTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: peopleCount},
	}}
}

// begin makes a decision about each of the people's findings, so that policies and operations find
// them decided.
func (p *people) begin(ctx context.Context) error {
	p.series++
	for i := range p.next {
		p.next[i] = i
	}
	return each(ctx, peopleCount, func(ctx context.Context, i int) error {
		for range len(p.findings) / peopleCount {
			if err := p.decide(ctx, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// beside has the people decide until the work is done. It returns the sample of their decisions.
func (p *people) beside(ctx context.Context, work func(context.Context) error) (measure.Sample, error) {
	over := make(chan struct{})
	taken := make([][]time.Duration, peopleCount)
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(over)
		return work(ctx)
	})
	group.Go(func() error {
		return each(ctx, peopleCount, func(ctx context.Context, i int) (err error) {
			taken[i], err = p.until(ctx, over, i)
			return err
		})
	})
	err := group.Wait()
	return measure.SampleOf(slices.Concat(taken...), time.Since(began)), err
}

// until has one person decide until over is closed, and returns how long each decision took.
func (p *people) until(ctx context.Context, over <-chan struct{}, person int) (taken []time.Duration, err error) {
	for {
		select {
		case <-over:
			return taken, nil
		case <-ctx.Done():
			return taken, ctx.Err()
		case <-time.After(wait.Jitter(personPause/2, 2)): // a pause on average
		}
		began := time.Now()
		if err := p.decide(ctx, person); err != nil {
			return taken, err
		}
		taken = append(taken, time.Since(began))
	}
}

// decide has a person make the next decision.
func (p *people) decide(ctx context.Context, person int) error {
	d := newDecision(p.findings, fmt.Sprintf("series %d of people", p.series), p.next[person])
	p.next[person] += peopleCount
	return p.store(ctx, d, person)
}

// store has a person send the decision until it is stored.
func (p *people) store(ctx context.Context, d decision, person int) error {
	url := "http://" + p.fixture.Facade.Address + findingPath(d.finding)
	tokens := p.fixture.Organization.Tokens
	return eventually(ctx, personAgain, personTimeout, func(ctx context.Context) error {
		err := p.patch(ctx, url, d.restBody(), tokens[person%len(tokens)])
		if err != nil {
			p.again.Add(1)
		}
		return err
	})
}

// findingPath is the path of a finding in the REST API.
func findingPath(finding string) string { return "/v2/findings/" + finding }

func (p *people) patch(ctx context.Context, url string, body []byte, token string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	_, err = bench.Ask(p.client, request, token)
	return err
}
