package ratelimit

import (
	"net/http"
	"strconv"
	"time"

	"github.com/ulule/limiter/v3"
)

// Decision is what a caller is told of its limit.
type Decision struct {
	// Allowed is whether the request may go on.
	Allowed bool
	// Limit is how many requests the window allows.
	Limit int
	// Remaining is how many of them are left, this one taken off; never negative.
	Remaining int
	// Reset is in how many seconds the window ends: 1 to 60, never sooner than said.
	Reset int
	// RetryAfter is how many seconds a refused caller has to wait; 0 if it is allowed.
	RetryAfter int
}

// SetHeaders writes the three headers of every response, and retry-after on a refusal.
func (d Decision) SetHeaders(header http.Header) {
	header.Set("X-Ratelimit-Limit", strconv.Itoa(d.Limit))
	header.Set("X-Ratelimit-Remaining", strconv.Itoa(d.Remaining))
	header.Set("X-Ratelimit-Reset", strconv.Itoa(d.Reset))
	if !d.Allowed {
		header.Set("Retry-After", strconv.Itoa(d.RetryAfter))
	}
}

func decide(counted limiter.Context, now time.Time, window time.Duration) Decision {
	decision := Decision{
		Allowed:   !counted.Reached,
		Limit:     int(counted.Limit),
		Remaining: int(counted.Remaining),
		Reset:     secondsLeft(counted.Reset, now, window),
	}
	if !decision.Allowed {
		decision.RetryAfter = decision.Reset
	}
	return decision
}

// secondsLeft rounds up to what a client may wait without being early. The end of the window
// is an epoch second that was cut off: the window ends within the second that follows. It is
// over no later than one window from now, and a clock set back must not say otherwise.
func secondsLeft(end int64, now time.Time, window time.Duration) int {
	left := ceilSeconds(time.Unix(end+1, 0).Sub(now))
	return max(1, min(left, ceilSeconds(window)))
}

func ceilSeconds(d time.Duration) int {
	return int((d + time.Second - 1) / time.Second)
}
