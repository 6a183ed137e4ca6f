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

// maxWaiting bounds the writers that wait for one object. A write takes some 20 ms, so whoever came
// behind more would not have a turn within Patience.
const maxWaiting = 1000

// errLongLine is returned to whoever would be one too many.
var errLongLine = errors.New("too many writers wait for the object")

// lines let the writers of one object have it one at a time, in the order in which they came. Writers
// of different objects know nothing of one another.
type lines struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*line
	// pause is how long this replica leaves an object to others.
	pause func() time.Duration
}

// line is one object's: somebody has it, or it is left to other replicas.
type line struct {
	waiting []*waiter
	// round is how many more of the writers have it before it is left to other replicas. A round is as
	// long as the line was at its beginning: a replica where many wait gets more than one where few do.
	round int
}

type waiter struct{ turn chan struct{} }

func newLines(pause func() time.Duration) *lines {
	return &lines{all: map[types.NamespacedName]*line{}, pause: pause}
}

// enter waits for the object. The caller calls leave once, when it needs it no more. The error is
// errLongLine or the context's.
func (l *lines) enter(ctx context.Context, object types.NamespacedName) (leave func(), err error) {
	leave = func() { l.leave(object) }
	mine, err := l.join(object)
	if err != nil || mine == nil {
		return leave, err
	}
	select {
	case <-mine.turn:
		return leave, nil
	case <-ctx.Done():
		if !l.quit(object, mine) {
			leave() // it had just become ours
		}
		return nil, context.Cause(ctx)
	}
}

// join returns nil where nobody has the object: then the caller does.
func (l *lines) join(object types.NamespacedName) (*waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	its := l.all[object]
	if its == nil {
		l.all[object] = &line{round: 1}
		return nil, nil
	}
	if len(its.waiting) >= maxWaiting {
		return nil, errLongLine
	}
	mine := &waiter{turn: make(chan struct{})}
	its.waiting = append(its.waiting, mine)
	return mine, nil
}

// quit takes a waiter out of the line. It reports false for one that has the object.
func (l *lines) quit(object types.NamespacedName, gone *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	its := l.all[object]
	at := slices.Index(its.waiting, gone)
	if at < 0 {
		return false
	}
	its.waiting = slices.Delete(its.waiting, at, at+1)
	return true
}

func (l *lines) leave(object types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	its := l.all[object]
	its.round--
	if its.round > 0 || len(its.waiting) == 0 {
		l.next(object)
		return
	}
	time.AfterFunc(l.pause(), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		its.round = len(its.waiting)
		l.next(object)
	})
}

// next gives the object to whoever has waited longest; nobody waits: the line is forgotten. The caller
// holds the mutex.
func (l *lines) next(object types.NamespacedName) {
	its := l.all[object]
	if len(its.waiting) == 0 {
		delete(l.all, object)
		return
	}
	first := its.waiting[0]
	its.waiting = slices.Delete(its.waiting, 0, 1)
	close(first.turn)
}

// pace is about how long a try takes, read and write together. The zero value is a guess.
type pace struct {
	mu   sync.Mutex
	took time.Duration
}

const (
	guessedTry = 20 * time.Millisecond
	longestTry = 250 * time.Millisecond
)

func (p *pace) set(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took = min(took, longestTry)
}

// between is at random from so many tries to so many.
func (p *pace) between(from, to float64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	try := p.took
	if try == 0 {
		try = guessedTry
	}
	return time.Duration((from + (to-from)*rand.Float64()) * float64(try)) //nolint:gosec // not a secret
}
