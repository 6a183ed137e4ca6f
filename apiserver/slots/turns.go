package slots

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// Turns limits work that waits for its turn: in total, and to one turn at a time per organization. It is safe for
// concurrent use.
type Turns struct {
	mu   sync.Mutex
	free int
	busy map[string]bool // organizations that have a turn
	// waiting are in the order in which they get a turn.
	waiting []*waiter
}

type waiter struct {
	organization string
	// turn is closed once it is the waiter's turn.
	turn chan struct{}
}

// NewTurns returns turns of which total may be taken at the same time.
func NewTurns(total int) *Turns { return &Turns{free: total, busy: map[string]bool{}} }

// Take waits for a turn. The caller gives it back by calling end once. Organizations take turns: after one of them has
// had a turn, all that wait already come before its next. The error is the cause of the context's end.
func (t *Turns) Take(ctx context.Context, organization string) (end func(), err error) {
	w := &waiter{organization: organization, turn: make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, w)
	t.give()
	t.mu.Unlock()
	select {
	case <-w.turn:
		return func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.end(organization)
		}, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, w); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	} else {
		t.end(organization) // its turn came meanwhile
	}
	return nil, context.Cause(ctx)
}

// Wanted reports whether an organization without a turn waits for one.
func (t *Turns) Wanted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first() >= 0
}

// first returns the index of the first waiter whose organization has no turn, or -1.
func (t *Turns) first() int {
	return slices.IndexFunc(t.waiting, func(w *waiter) bool { return !t.busy[w.organization] })
}

func (t *Turns) end(organization string) {
	t.free++
	delete(t.busy, organization)
	behind := func(w *waiter) int {
		if w.organization == organization {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(t.waiting, func(a, b *waiter) int { return cmp.Compare(behind(a), behind(b)) })
	t.give()
}

// give gives the free turns to those that have waited longest, of organizations without one.
func (t *Turns) give() {
	for t.free > 0 {
		i := t.first()
		if i < 0 {
			return
		}
		w := t.waiting[i]
		t.waiting = slices.Delete(t.waiting, i, i+1)
		t.free--
		t.busy[w.organization] = true
		close(w.turn)
	}
}
