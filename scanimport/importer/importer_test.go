package importer

import (
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

func TestAScanDoesNotStartInTheFuture(t *testing.T) {
	testenv.SetServerTime(t, time.Now().Add(-30*24*time.Hour)) // the local clock is ahead
	server := apitime.Now()
	for name, tc := range map[string]struct{ given, want time.Time }{
		"unknown":                       {time.Time{}, server},
		"by the clock that is ahead":    {time.Now(), server},
		"by the API server's, earlier":  {server.Add(-time.Hour), server.Add(-time.Hour)},
		"as far ahead as clocks differ": {server.Add(time.Minute), server.Add(time.Minute)},
	} {
		if got := (&Batch{StartedAt: tc.given}).Started(); got.Sub(tc.want).Abs() > time.Minute/2 {
			t.Errorf("%s: it started at %s, want about %s", name, got, tc.want)
		}
	}
}
