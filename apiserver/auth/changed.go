package auth

import "sync"

// bell wakes all its waiters at once.
type bell struct {
	mu sync.Mutex
	// rung is closed by the next ring; nil without waiters.
	rung chan struct{}
}

func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

// Changed returns a channel that is closed by the next change to the data that Authenticate uses. Call it
// before Authenticate, so that no change is missed in between. The mere expiry of a key or token does not close
// it.
func (a *Authenticator) Changed() <-chan struct{} { return a.changed.wait() }
