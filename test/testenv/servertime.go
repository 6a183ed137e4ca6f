package testenv

import (
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// HearTime makes this process believe until the test ends that the API server's time is that one.
func HearTime(t *testing.T, at time.Time) {
	t.Helper()
	hearTime(t, at)
	t.Cleanup(func() { hearTime(t, time.Now()) })
}

func hearTime(t *testing.T, at time.Time) {
	t.Helper()
	config := &rest.Config{Transport: harness.RoundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{Header: http.Header{"Date": {at.UTC().Format(http.TimeFormat)}}, Body: http.NoBody}, nil
	})}
	apitime.Hear(config)
	transport, err := rest.TransportFor(config)
	harness.Must(t, err)
	response, err := transport.RoundTrip(&http.Request{})
	harness.Must(t, err)
	harness.Must(t, response.Body.Close())
}

// WantHeard fails the test unless this process goes by the time of a server after a request with the config for it.
func WantHeard(t *testing.T, configFor func(url string) (*rest.Config, error)) {
	t.Helper()
	HearTime(t, time.Now())
	at := time.Now().Add(-48 * time.Hour)
	url := harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", at.UTC().Format(http.TimeFormat))
	}))
	config, err := configFor(url)
	harness.Must(t, err)
	client, err := rest.HTTPClientFor(config)
	harness.Must(t, err)
	_, err = harness.Get(t.Context(), client, url)
	harness.Must(t, err)
	if now, _ := apitime.OfServer(); now.Sub(at).Abs() > time.Minute {
		t.Errorf("it takes the API server's time for %s, want about %s", now, at)
	}
}
