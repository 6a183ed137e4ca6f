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
