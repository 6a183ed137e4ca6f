package apitime

import "time"

// Elapsed returns the time between two readings of this process's clock, by the clock that has advanced more: the
// monotonic clock stops while the machine sleeps, and the wall clock can be set back.
func Elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}
