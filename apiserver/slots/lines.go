package slots

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrBusy is returned to a caller that gets no turn because too many others want one.
var ErrBusy = errors.New("too many callers wait")

// Lines give the callers of each key, such as the writers of an object, one turn at a time, in the order of their
// arrival. Callers of different keys do not affect one another. Lines are safe for concurrent use.
type Lines[K comparable] struct {
	// Most bounds the callers that wait for one key.
	Most int
	// Patience is how long a caller waits; 0: until its context ends.
	Patience time.Duration
	// Pause returns how long this replica leaves a key to others after each round; nil: not at all.
	Pause func() time.Duration

	mu  sync.Mutex
	all map[K]*line
}

// line is the queue of one key. It exists while a caller has its turn, or while the key is left to other replicas.
type line struct {
	turn *semaphore.Weighted
	// callers counts those that wait, and the one that has its turn or had the last one before the pause.
	callers int
	// round is how many more callers of this replica get a turn before the key is left to other replicas. A round
	// starts with the number of waiting callers, so a replica with many gets more turns than one with few.
	round int
}

// Enter waits for a turn. The caller ends it by calling leave once. The error is ErrBusy or the cause of the context's
// end.
func (l *Lines[K]) Enter(ctx context.Context, key K) (leave func(), err error) {
	queue := l.join(key)
	if queue == nil {
		return nil, ErrBusy
	}
	if l.Patience > 0 {
		var stop func()
		ctx, stop = context.WithTimeoutCause(ctx, l.Patience, ErrBusy)
		defer stop()
	}
	if queue.turn.Acquire(ctx, 1) != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.quit(key, queue)
		return nil, context.Cause(ctx)
	}
	return func() { l.leave(key, queue) }, nil
}

// join returns nil if too many wait already.
func (l *Lines[K]) join(key K) *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.all[key]
	if queue == nil {
		if l.all == nil {
			l.all = map[K]*line{}
		}
		queue = &line{turn: semaphore.NewWeighted(1), round: 1}
		l.all[key] = queue
	}
	if queue.callers > l.Most {
		return nil
	}
	queue.callers++
	return queue
}

func (l *Lines[K]) leave(key K, queue *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue.round--
	if queue.round > 0 || queue.callers == 1 || l.Pause == nil {
		l.next(key, queue)
		return
	}
	time.AfterFunc(l.Pause(), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		queue.round = queue.callers - 1
		l.next(key, queue)
	})
}

// next gives the turn to the longest waiter. The caller holds the mutex.
func (l *Lines[K]) next(key K, queue *line) {
	queue.turn.Release(1)
	l.quit(key, queue)
}

// quit removes a caller from the line, and a line without callers. The caller holds the mutex.
func (l *Lines[K]) quit(key K, queue *line) {
	if queue.callers--; queue.callers == 0 {
		delete(l.all, key)
	}
}
