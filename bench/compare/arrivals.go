package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// arrivals reports when things arrive that were expected before, each by its name.
type arrivals struct {
	// what names the things in errors, and patience bounds the wait for each.
	what     string
	patience time.Duration

	mu       sync.Mutex
	expected map[string]chan time.Time
}

func newArrivals(what string, patience time.Duration) *arrivals {
	return &arrivals{what: what, patience: patience, expected: map[string]chan time.Time{}}
}

// expect makes the next arrival of that name count; seen waits for it and returns its time.
func (a *arrivals) expect(name string) (seen func(context.Context) (time.Time, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	came := make(chan time.Time, 1)
	a.expected[name] = came
	return func(ctx context.Context) (time.Time, error) {
		late := time.NewTimer(a.patience)
		defer late.Stop()
		select {
		case at := <-came:
			return at, nil
		case <-late.C:
			return time.Time{}, fmt.Errorf("%s has not brought %s in %s", a.what, name, a.patience)
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
}

// came records an arrival. One that is not expected is ignored.
func (a *arrivals) came(name string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if came := a.expected[name]; came != nil {
		came <- at // the channel's buffer has room for it
		delete(a.expected, name)
	}
}
