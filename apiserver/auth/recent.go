package auth

import (
	"maps"
	"time"
)

// sweepInterval is how often a recent drops what it no longer needs.
const sweepInterval = time.Minute

// recent remembers when an action was last done for each key, for as long as that suppresses doing it again.
type recent[K comparable] struct {
	interval time.Duration
	at       map[K]time.Time
	swept    time.Time
}

func newRecent[K comparable](interval time.Duration) recent[K] {
	return recent[K]{interval: interval, at: map[K]time.Time{}}
}

// has reports whether the action was done for the key less than an interval before now, or after it, because a clock
// may be set back.
func (r *recent[K]) has(key K, now time.Time) bool {
	at, ok := r.at[key]
	return ok && now.Sub(at).Abs() < r.interval
}

// sweep drops the entries that suppress nothing any more, so that deleted keys take no memory.
func (r *recent[K]) sweep(now time.Time) {
	if now.Sub(r.swept) < sweepInterval {
		return
	}
	r.swept = now
	maps.DeleteFunc(r.at, func(key K, _ time.Time) bool { return !r.has(key, now) })
}
