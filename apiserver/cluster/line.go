package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// errLongLine is returned to a caller that would exceed the length of a line.
var errLongLine = errors.New("too many callers wait")

// lines serialize the callers of each object, such as its writers, in the order of their arrival. Callers of different
// objects do not affect one another.
type lines struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*line
	// most bounds the callers that wait for one object.
	most int
	// pause returns how long this replica leaves an object to others.
	pause func() time.Duration
}

// line is the queue of one object. It exists while a caller has its turn, or while the object is left to other
// replicas.
type line struct {
	waiting []*waiter
	// round is how many more callers of this replica get a turn before the object is left to other replicas. A
	// round starts with the length of the queue, so a replica with many waiting callers gets more turns than
	// one with few.
	round int
}

type waiter struct{ turn chan struct{} }

func newLines(most int, pause func() time.Duration) *lines {
	return &lines{all: map[types.NamespacedName]*line{}, most: most, pause: pause}
}

// noPause leaves nothing to other replicas.
func noPause() time.Duration { return 0 }

// enter waits for a turn. The caller calls leave once, at the end of its turn. The error is errLongLine or the
// context's.
func (l *lines) enter(ctx context.Context, object types.NamespacedName) (leave func(), err error) {
	leave = func() { l.leave(object) }
	w, err := l.join(object)
	if err != nil || w == nil {
		return leave, err
	}
	select {
	case <-w.turn:
		return leave, nil
	case <-ctx.Done():
		if !l.quit(object, w) {
			leave() // the turn came at the same moment
		}
		return nil, context.Cause(ctx)
	}
}

// join returns nil if nobody has a turn: then the caller has it at once.
func (l *lines) join(object types.NamespacedName) (*waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.all[object]
	if queue == nil {
		l.all[object] = &line{round: 1}
		return nil, nil
	}
	if len(queue.waiting) >= l.most {
		return nil, errLongLine
	}
	w := &waiter{turn: make(chan struct{})}
	queue.waiting = append(queue.waiting, w)
	return w, nil
}

// quit removes a waiter from the line. It returns false if the waiter already has its turn.
func (l *lines) quit(object types.NamespacedName, gone *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.all[object]
	at := slices.Index(queue.waiting, gone)
	if at < 0 {
		return false
	}
	queue.waiting = slices.Delete(queue.waiting, at, at+1)
	return true
}

func (l *lines) leave(object types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.all[object]
	queue.round--
	if queue.round > 0 || len(queue.waiting) == 0 {
		l.next(object)
		return
	}
	time.AfterFunc(l.pause(), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		queue.round = len(queue.waiting)
		l.next(object)
	})
}

// next gives the turn to the longest waiter, or removes the line if nobody waits. The caller holds the mutex.
func (l *lines) next(object types.NamespacedName) {
	queue := l.all[object]
	if len(queue.waiting) == 0 {
		delete(l.all, object)
		return
	}
	first := queue.waiting[0]
	queue.waiting = slices.Delete(queue.waiting, 0, 1)
	close(first.turn)
}

// pace estimates how long a try takes, read and write together. The zero value is a guess.
type pace struct {
	mu   sync.Mutex
	took time.Duration
}

const (
	guessedTry = 20 * time.Millisecond
	maxTry     = 250 * time.Millisecond
)

func (p *pace) set(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took = min(took, maxTry)
}

// between returns a random duration, from and to being multiples of the duration of a try.
func (p *pace) between(from, to float64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	try := p.took
	if try == 0 {
		try = guessedTry
	}
	return time.Duration((from + (to-from)*rand.Float64()) * float64(try)) //nolint:gosec // not a secret
}
