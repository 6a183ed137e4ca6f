package apitime

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestTheClockIsNotFarAheadOfTheAPIServers(t *testing.T) {
	logger, limit := log.Log, logged
	t.Cleanup(func() { log.Log, logged = logger, limit })
	for _, c := range []struct {
		reason  string
		ahead   time.Duration
		bounded bool
		logs    string
	}{
		{"equal clocks", 0, false, ""},
		{"a little ahead, as of many machines", MaxAhead - time.Minute, false, ""},
		{"ahead: what is due would end too early", MaxAhead + time.Minute, true,
			"minutes ahead of the API server's: set the one that is wrong. Until then the API server's time decides what is due and what ends. Ignore this if the machine has just slept"},
		{"by years", 10 * 365 * 24 * time.Hour, true, "minutes ahead"},
		{"behind: what is due ends late, as it does if no controller runs", -48 * time.Hour, false,
			"minutes behind the API server's: set the one that is wrong. Until then what is due ends late, and if this process is"},
		{"a little behind", time.Minute - MaxAhead, false, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			began := time.Now()
			of := began.Add(-c.ahead)
			url := harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", of.UTC().Format(http.TimeFormat))
			}))
			defer lastAnswer.Store(nil)
			config := &rest.Config{Host: url}
			Observe(config)
			client, err := rest.HTTPClientFor(config)
			harness.Must(t, err)
			_, err = harness.Get(t.Context(), client, url)
			harness.Must(t, err)

			want := began
			if c.bounded {
				want = of.Add(MaxAhead)
			}
			var lines harness.Buffer
			log.Log, logged = harness.ErrorLogger(&lines), &rate.Sometimes{First: 1}
			// Dates are in whole seconds.
			if got := (Clock{}).Now(); got.Before(want.Add(-time.Second)) || got.Sub(want) > time.Minute/2 {
				t.Errorf("it is %s, want about %s", got, want)
			}
			if got := lines.String(); !strings.Contains(got, c.logs) || (got == "") != (c.logs == "") {
				t.Errorf("it logs %q, want %q", got, c.logs)
			}
		})
	}
}
