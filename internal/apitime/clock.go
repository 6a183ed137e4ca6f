// Package apitime returns the API server's time, provides a clock that is never more than MaxAhead ahead of it, and
// measures time across a sleep of the machine.
package apitime

import (
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// MaxAhead is how far Clock may be ahead of the API server's.
const MaxAhead = 5 * time.Minute

// answer is a response of the API server: its Date, and when it arrived.
type answer struct{ date, at time.Time }

var (
	lastAnswer atomic.Pointer[answer]
	logged     = &rate.Sometimes{Interval: 10 * time.Minute}
)

// Observe makes the clients of this config note the API server's time. A process must use only one API server.
func Observe(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return dateRecorder{next} })
}

type dateRecorder struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r dateRecorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		lastAnswer.Store(&answer{date: date, at: time.Now()})
	}
	return response, nil
}

// OfServer returns the API server's time, and whether any response has contained it. After the machine slept, it is
// behind by that time until the next response.
func OfServer() (now time.Time, known bool) {
	last := lastAnswer.Load()
	if last == nil {
		return now, false
	}
	// Use the monotonic clock, so that setting the local clock forward is noticed before the next response.
	return last.date.Add(time.Since(last.at)), true
}

// Now returns the API server's time, or the local clock's until a response has contained it. Use it for times that are
// stored and compared with those of other machines. It may be set back.
func Now() time.Time {
	if now, known := OfServer(); known {
		return now
	}
	return time.Now()
}

// Clock is the local clock, but never more than five minutes ahead of the API server's, because what is due by it is
// ended, replaced or deleted permanently. It may be set back, so do not measure durations with it. Tickers and timers
// are local.
type Clock struct{ clock.RealClock }

// Now implements clock.PassiveClock.
func (Clock) Now() time.Time {
	now := time.Now()
	server, known := OfServer()
	ahead := now.Sub(server)
	switch {
	case !known || ahead.Abs() < MaxAhead:
		return now
	case ahead < 0:
		report("behind", -ahead, "what is due ends late, and if this process is the controllers, they date changes too "+
			"early: an operation that waits for its turn may replace what a person decides meanwhile")
		return now
	}
	report("ahead of", ahead, "the API server's time decides what is due and what ends. Ignore this if the machine has "+
		"just slept: the API server's next response corrects it")
	return server.Add(MaxAhead)
}

// report logs how far this machine's clock is ahead of the API server's, or behind it, and the consequences.
func report(direction string, by time.Duration, consequence string) {
	logged.Do(func() {
		log.Log.WithName("apitime").Error(nil, "The clock of this machine is more than five minutes "+direction+
			" the API server's: set the one that is wrong. Until then "+consequence, "by", by.Round(time.Second).String())
	})
}

// Since implements clock.PassiveClock.
func (c Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
