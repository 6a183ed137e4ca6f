package kube

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"
)

// A replica that starts has heard nothing yet, and is not deaf.
func TestTheSilenceThatIsExposedBeginsWithTheWatch(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	contact := NewContact("heard_seconds", clock)
	clock.Step(time.Hour)
	record := contact.Watch("findings")
	for _, c := range []struct {
		reason string
		do     func()
		want   float64
	}{
		{"nothing has arrived since the watch", func() { clock.Step(30 * time.Second) }, 30},
		{"a second watch of the kind begins nothing anew", func() { contact.Watch("findings") }, 30},
		{"something arrives", func() { record() }, 0},
		{"nothing arrives", func() { clock.Step(5 * time.Minute) }, 300},
	} {
		c.do()
		if got := testutil.ToFloat64(contact); got != c.want {
			t.Errorf("%s: %f seconds, want %f", c.reason, got, c.want)
		}
	}
}
