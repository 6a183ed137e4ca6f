package ratelimit

import (
	"net/http"
	"strconv"
	"time"
)

// Decision is the state of a caller's limit after a request.
type Decision struct {
	// Allowed reports whether the request may proceed.
	Allowed bool
	// Limit is how many requests the window allows.
	Limit int
	// Remaining is how many requests are left after this one; never negative.
	Remaining int
	// Reset is in how many seconds the window ends, rounded up: 1 to 60. A refused caller has to wait that long.
	Reset int
}

// SetHeaders writes the three headers of every response, and retry-after on a refusal.
func (d Decision) SetHeaders(header http.Header) {
	header.Set("X-Ratelimit-Limit", strconv.Itoa(d.Limit))
	header.Set("X-Ratelimit-Remaining", strconv.Itoa(d.Remaining))
	header.Set("X-Ratelimit-Reset", strconv.Itoa(d.Reset))
	if !d.Allowed {
		header.Set("Retry-After", strconv.Itoa(d.Reset))
	}
}

func decide(c counted, limit int64, window time.Duration) Decision {
	return Decision{
		Allowed:   c.requests <= limit,
		Limit:     int(limit),
		Remaining: int(max(0, limit-c.requests)),
		Reset:     secondsLeft(c.left, window),
	}
}

// secondsLeft rounds up, so that a client that waits as long is not too early. A counter that was restored from
// elsewhere may have a longer window than ours; the result is at most one window.
func secondsLeft(left, window time.Duration) int {
	return max(1, min(ceilSeconds(left), ceilSeconds(window)))
}

func ceilSeconds(d time.Duration) int {
	return int((d + time.Second - 1) / time.Second)
}
