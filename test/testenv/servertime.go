package testenv

import (
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// SetServerTime makes this process use that time as the API server's until the test ends.
func SetServerTime(t *testing.T, at time.Time) {
	t.Helper()
	setServerTime(t, at)
	t.Cleanup(func() { setServerTime(t, time.Now()) })
}

func setServerTime(t *testing.T, at time.Time) {
	t.Helper()
	config := &rest.Config{Transport: harness.RoundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{Header: http.Header{"Date": {at.UTC().Format(http.TimeFormat)}}, Body: http.NoBody}, nil
	})}
	apitime.Observe(config)
	transport, err := rest.TransportFor(config)
	harness.Must(t, err)
	response, err := transport.RoundTrip(&http.Request{})
	harness.Must(t, err)
	harness.Must(t, response.Body.Close())
}

// CheckUsesServerTime fails the test unless this process uses the time of a server after a request with the config for
// it.
func CheckUsesServerTime(t *testing.T, configFor func(url string) (*rest.Config, error)) {
	t.Helper()
	SetServerTime(t, time.Now())
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
