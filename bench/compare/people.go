package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
)

const (
	// peopleCount is how many people decide at the same time, and personPause how long each looks at the next finding.
	peopleCount = 20
	personPause = time.Second
	// personTimeout is more than anybody should wait, and personAgain when a person tries again.
	personTimeout = 2 * time.Minute
	personAgain   = 100 * time.Millisecond
)

// people decide about single findings through the REST API, each about findings of its own.
type people struct {
	fixture  *bench.Fixture
	client   *http.Client
	findings []string
	// series counts what the people go through, so that no decision repeats an earlier one, and next is the number of
	// each person's next decision.
	series int
	next   [peopleCount]int
	// again counts the decisions that the REST API asked to try again: a person waits until one is stored.
	again atomic.Int64
}

// newPeople returns people for these findings, of which there must be a multiple of peopleCount.
func newPeople(f *bench.Fixture, findings []string) *people {
	return &people{fixture: f, findings: findings, client: &http.Client{
		Timeout: personTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: peopleCount},
	}}
}

// begin has each finding of the people decided about, as policies and operations find it then.
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

// beside has the people decide until the work is done. The sample is of their decisions.
func (p *people) beside(ctx context.Context, work func(context.Context) error) (measure.Sample, error) {
	over := make(chan struct{})
	var lock sync.Mutex
	var taken []time.Duration
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(over)
		return work(ctx)
	})
	group.Go(func() error {
		return each(ctx, peopleCount, func(ctx context.Context, i int) error {
			mine, err := p.until(ctx, over, i)
			lock.Lock()
			defer lock.Unlock()
			taken = append(taken, mine...)
			return err
		})
	})
	err := group.Wait()
	return sampleOf(taken, time.Since(began)), err
}

// until has one of the people decide until it is over, and returns how long each decision took.
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

// decide has one of the people take its next decision.
func (p *people) decide(ctx context.Context, person int) error {
	d := newDecision(p.findings, fmt.Sprintf("series %d of people", p.series), p.next[person])
	p.next[person] += peopleCount
	url := "http://" + p.fixture.Facade.Address + "/v2/findings/" + d.finding
	tokens := p.fixture.Organization.Tokens
	return eventually(ctx, personAgain, personTimeout, func(ctx context.Context) error {
		err := p.patch(ctx, url, d.restBody(), tokens[person%len(tokens)])
		if err != nil {
			p.again.Add(1)
		}
		return err
	})
}

func (p *people) patch(ctx context.Context, url string, body []byte, token string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("PATCH %s: %s: %s", url, response.Status, content)
	}
	return err
}
