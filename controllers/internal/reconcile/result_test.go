package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
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
