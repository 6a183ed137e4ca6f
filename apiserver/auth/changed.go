package auth

import "sync"

// bell rings once for all who wait for it.
type bell struct {
	mu sync.Mutex
	// rung is closed by the next ring; nil while nobody waits.
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

// Changed returns a channel that is closed once anything is known anew by which Authenticate decides. Call it before
// Authenticate, so that no change comes between. What ends by the clock alone does not close it.
func (a *Authenticator) Changed() <-chan struct{} { return a.changed.wait() }
