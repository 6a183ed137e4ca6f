package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestWhatWaitsForRoomInAQuotaComesBackLastWithoutAnError(t *testing.T) {
	full := fmt.Errorf("settle: %w", &ledger.FullError{After: time.Minute})
	for again, want := range map[time.Duration]time.Duration{
		0: time.Minute, time.Second: time.Second, time.Hour: time.Minute,
	} {
		got, err := result(&outcome{again: again, priority: new(watch.Due)}, full)
		if err != nil || got.RequeueAfter != want || got.Priority == nil || *got.Priority >= 0 {
			t.Errorf("with another wait of %s: %+v, %v", again, got, err)
		}
	}
}

// After a restart, all that an operation decided is looked at in the same minute of each hour.
func TestOnlyTheLooksNearTheEndOfADecisionComeAheadOfImports(t *testing.T) {
	for left, want := range map[time.Duration]struct {
		after    time.Duration
		priority int
	}{
		time.Minute:               {time.Minute, watch.Due},
		2 * time.Hour:             {time.Hour, watch.Due},
		2*time.Hour + time.Second: {time.Hour, 0},
		90 * 24 * time.Hour:       {time.Hour, 0},
	} {
		o := &outcome{}
		o.RequeueAtEnd(left)
		harness.Same(t, left.String(), want.after, o.again)
		harness.Same(t, left.String(), want.priority, *o.priority)
	}
}
