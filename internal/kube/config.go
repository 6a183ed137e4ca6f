package kube

import (
	"net/http"

	"k8s.io/client-go/rest"
)

// ClientConfig returns the config of a client without a rate limit, because the API server limits requests itself. Nor
// does the client repeat a write that fails with a code of 500 and above: client-go repeats each request whose answer
// has a Retry-After, and returns only the last error, from which IsOutcomeUnknown cannot tell that the first may be
// stored.
func ClientConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return writeOnce{next} })
	return config
}

type writeOnce struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (w writeOnce) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(request)
	if err == nil && request.Method != http.MethodGet && response.StatusCode >= http.StatusInternalServerError {
		response.Header.Del("Retry-After")
	}
	return response, err
}
