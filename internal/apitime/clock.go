// Package apitime is a clock that is not ahead of the API server's.
package apitime

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// mostAhead is how far the local clock may be ahead of the API server's. It is as much as the times of others may be
// ahead of the local one.
const mostAhead = 5 * time.Minute

// answer is the newest answer of the API server: its Date, and when it arrived.
type answer struct{ date, at time.Time }

var (
	newest atomic.Pointer[answer]
	// told is true while the local clock is known to be ahead.
	told atomic.Bool
)

// Hear makes the clients of this config note the API server's time. A process has one API server of the kinds.
func Hear(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return hearing{next} })
}

type hearing struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (h hearing) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := h.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		newest.Store(&answer{date: date, at: time.Now()})
	}
	return response, nil
}

// Clock is the local clock, except while that is far ahead of the API server's: what is due by its time would be ended
// or deleted for good. Then it is the API server's. Tickers and timers are local.
type Clock struct{ clock.RealClock }

// Now implements clock.PassiveClock.
func (Clock) Now() time.Time {
	now := time.Now()
	heard := newest.Load()
	if heard == nil {
		return now
	}
	// By the monotonic clock, so that a local clock that is set forward is noticed before the next answer.
	of := heard.date.Add(now.Sub(heard.at))
	ahead := now.Sub(of) > mostAhead
	if told.Swap(ahead) != ahead && ahead {
		ctrl.Log.WithName("apitime").Info("The clock of this machine is ahead of the API server's, whose time is used until "+
			"it is corrected: synchronize both", "ahead", now.Sub(of).Round(time.Second).String())
	}
	if ahead {
		return of
	}
	return now
}

// Since implements clock.PassiveClock.
func (c Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
