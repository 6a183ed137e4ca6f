package readmodel

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// turnPatience is how long a caller waits for its turn.
	turnPatience = 10 * time.Second
	// maxWaiting bounds the callers that wait for a turn.
	maxWaiting = 20
)

// ErrBusy is returned to a caller that gets no turn because too many others want one.
var ErrBusy = errors.New("too many callers wait")

// turns let one caller at a time work on an organization's data.
type turns struct {
	one     *semaphore.Weighted
	waiting atomic.Int32
}

func newTurns() *turns { return &turns{one: semaphore.NewWeighted(1)} }

// enter waits for a turn, which leave ends. The error is ErrBusy or the context's.
func (t *turns) enter(ctx context.Context) error {
	if t.tryEnter() {
		return nil
	}
	defer t.waiting.Add(-1)
	if t.waiting.Add(1) > maxWaiting {
		return ErrBusy
	}
	waiting, stop := context.WithTimeout(ctx, turnPatience)
	defer stop()
	err := t.one.Acquire(waiting, 1)
	if err != nil && ctx.Err() == nil {
		return ErrBusy
	}
	return err
}

// tryEnter is enter for a caller that does not wait. It reports whether the caller has a turn.
func (t *turns) tryEnter() bool { return t.one.TryAcquire(1) }

func (t *turns) leave() { t.one.Release(1) }
