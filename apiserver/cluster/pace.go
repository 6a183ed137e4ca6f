package cluster

import (
	"math/rand/v2"
	"sync"
	"time"
)

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
