package apitime

import (
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestTheClockThatHasAdvancedMoreCounts(t *testing.T) {
	from := time.Now()
	for _, c := range []struct {
		reason string
		to     time.Time
		want   time.Duration
	}{
		{"both agree", from.Add(time.Minute), time.Minute},
		{"the machine was asleep", harness.MoveWallClock(from.Add(time.Second), time.Hour), time.Hour + time.Second},
		{"the wall clock was set back", harness.MoveWallClock(from.Add(time.Minute), -time.Hour), time.Minute},
	} {
		harness.Same(t, c.reason, c.want, Elapsed(from, c.to))
	}
}
