package ledger

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// minFull and maxFull bound how long no delivery is tried in a namespace after a quota refused one. Each further
	// refusal doubles the time.
	minFull = time.Second
	maxFull = time.Minute
	// retryInterval is the time between the retries of two objects, however many of a namespace wait.
	retryInterval = 10 * time.Millisecond
)

// FullError means that a quota has no room for further deliveries in the namespace. They remain owed.
type FullError struct {
	// After is when to reconcile the object again.
	After time.Duration
	// refusal is the last answer of the API server.
	refusal error
}

func (e *FullError) Error() string {
	return fmt.Sprintf("no room, tried again in %s: %v", e.After, e.refusal)
}

// Unwrap returns the refusal of the API server.
func (e *FullError) Unwrap() error { return e.refusal }

// quotaBackoff remembers the namespaces whose quota has no room for deliveries. Thousands of objects may owe some
// there, and each would send a request that is sure to fail and that delays other namespaces.
type quotaBackoff struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	// namespaces holds the namespaces of recent refusals.
	namespaces map[string]*fullNamespace
}

// fullNamespace is the state of one namespace.
type fullNamespace struct {
	// until is when the next delivery may be tried; zero after one was made.
	until time.Time
	pause time.Duration
	// lastRetry is when the last of the waiting objects is retried.
	lastRetry time.Time
	refusal   error
}

func newQuotaBackoff(c clock.PassiveClock) *quotaBackoff {
	return &quotaBackoff{clock: c, namespaces: map[string]*fullNamespace{}}
}

// takeTurn returns a FullError during the pause after a refusal. After the pause it lets one caller through, and begins
// the next pause for the others.
func (q *quotaBackoff) takeTurn(namespace string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	full, now := q.namespaces[namespace], q.clock.Now()
	switch {
	case full == nil || full.until.IsZero():
		return nil
	case now.Before(full.until):
		return full.postpone(now)
	}
	full.pause = min(2*full.pause, maxFull)
	full.until = now.Add(full.pause)
	return nil
}

// paused returns a FullError during the pause after a refusal, without changing the pause.
func (q *quotaBackoff) paused(namespace string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if full, now := q.namespaces[namespace], q.clock.Now(); full != nil && now.Before(full.until) {
		return full.postpone(now)
	}
	return nil
}

// succeeded records that there was room for a delivery.
func (q *quotaBackoff) succeeded(namespace string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if full := q.namespaces[namespace]; full != nil {
		full.until = time.Time{}
	}
}

// refused records that a quota refused a delivery, and returns the FullError for its object.
func (q *quotaBackoff) refused(ctx context.Context, namespace string, refusal error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Now()
	// While objects wait, one of them is retried.
	maps.DeleteFunc(q.namespaces, func(_ string, other *fullNamespace) bool {
		return now.Sub(other.until) > maxFull && now.Sub(other.lastRetry) > maxFull
	})
	full := q.namespaces[namespace]
	if full == nil {
		ctrl.LoggerFrom(ctx).Error(refusal, "a quota leaves no room for deliveries: those of the namespace are created later",
			"namespace", namespace)
		full = &fullNamespace{}
		q.namespaces[namespace] = full
	}
	if full.until.IsZero() {
		full.pause = minFull
	}
	// The refusal may have come after the pause that takeTurn began.
	if !full.until.After(now) {
		full.until = now.Add(full.pause)
	}
	full.refusal = refusal
	return full.postpone(now)
}

// postpone returns the FullError of one object, with the time of its retry.
func (n *fullNamespace) postpone(now time.Time) error {
	at := n.lastRetry.Add(retryInterval)
	if at.Before(n.until) {
		at = n.until
	}
	n.lastRetry = at
	return &FullError{After: at.Sub(now), refusal: n.refusal}
}
