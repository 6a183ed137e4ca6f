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
	// turn is the time between two objects that come back, however many of a namespace wait.
	turn = 10 * time.Millisecond
)

// FullError means that a quota has no room for further deliveries in the namespace. What is owed stays owed.
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

// rooms remembers the namespaces whose quota has no room for deliveries. Thousands of objects may owe some there, and
// each would ask the API server in vain, ahead of the objects of other namespaces.
type rooms struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	// of holds the namespaces of recent refusals.
	of map[string]*room
}

// room is what is known of one namespace.
type room struct {
	// until is when the next delivery may be tried; zero after one was made.
	until time.Time
	pause time.Duration
	// lastTurn is when the last of the waiting objects comes back.
	lastTurn time.Time
	refusal  error
}

func newRooms(c clock.PassiveClock) *rooms { return &rooms{clock: c, of: map[string]*room{}} }

// enter fails with a FullError while no delivery is to be tried in the namespace. It lets one object through each time
// that the pause is over.
func (r *rooms) enter(namespace string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	full, now := r.of[namespace], r.clock.Now()
	switch {
	case full == nil || full.until.IsZero():
		return nil
	case now.Before(full.until):
		return full.sendAway(now)
	}
	full.pause = min(2*full.pause, maxFull)
	full.until = now.Add(full.pause)
	return nil
}

// made records that there was room for a delivery.
func (r *rooms) made(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if full := r.of[namespace]; full != nil {
		full.until = time.Time{}
	}
}

// refused records that a quota refused a delivery, and returns the FullError for its object.
func (r *rooms) refused(ctx context.Context, namespace string, refusal error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	// While objects wait, one of them comes back.
	maps.DeleteFunc(r.of, func(_ string, other *room) bool {
		return now.Sub(other.until) > maxFull && now.Sub(other.lastTurn) > maxFull
	})
	full := r.of[namespace]
	if full == nil {
		ctrl.LoggerFrom(ctx).Error(refusal, "a quota has no room for deliveries: what is owed in the namespace waits for it",
			"namespace", namespace)
		full = &room{}
		r.of[namespace] = full
	}
	if full.until.IsZero() {
		full.pause = minFull
	}
	// The refusal may have come after the pause that enter began.
	if !full.until.After(now) {
		full.until = now.Add(full.pause)
	}
	full.refusal = refusal
	return full.sendAway(now)
}

// sendAway gives one object its turn to come back.
func (r *room) sendAway(now time.Time) error {
	at := r.lastTurn.Add(turn)
	if at.Before(r.until) {
		at = r.until
	}
	r.lastTurn = at
	return &FullError{After: at.Sub(now), refusal: r.refusal}
}
