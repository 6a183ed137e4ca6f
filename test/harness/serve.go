package harness

import (
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Serve serves the handler on a free port of this machine until the test ends, and returns its URL without a path.
func Serve(t testing.TB, handler http.Handler) (url string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	Must(t, err)
	return ServeOn(t, listener, handler)
}

// ServeOn is like Serve, and serves on the listener. When the test ends, it waits for the handlers under way.
func ServeOn(t testing.TB, listener net.Listener, handler http.Handler) (url string) {
	t.Helper()
	var serving sync.WaitGroup
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew: // reported by Serve itself, so while serving counts it
				serving.Add(1)
			case http.StateClosed, http.StateHijacked: // reported after the last handler of the connection
				serving.Done()
			}
		},
	}
	serving.Go(func() { server.Serve(listener) }) //nolint:errcheck // it ends by Close
	t.Cleanup(func() {
		server.Close() //nolint:errcheck // nothing is left to lose
		serving.Wait()
	})
	return "http://" + listener.Addr().String()
}

// ServeJSON is like Serve and answers each request with the status code and, as JSON, the content that answer returns.
func ServeJSON(t testing.TB, answer func(*http.Request) (code int, content any)) (url string) {
	t.Helper()
	return Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, content := answer(r)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(content); err != nil {
			t.Error(err)
		}
	}))
}

// Refusal returns the answer of an API server that refuses a request with that error, for ServeJSON.
func Refusal(err *apierrors.StatusError) (code int, content any) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return int(status.Code), status
}

// ProxyRefusal returns the error of a request that another server, such as a proxy, has refused with a page of its own.
func ProxyRefusal(code int, method string) error {
	return apierrors.NewGenericServerResponse(code, method, schema.GroupResource{}, "", http.StatusText(code), 0, true)
}

// RoundTripper is a function that answers requests in a client's transport.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// Between puts the function between the clients of the configuration and their transport.
func Between(config *rest.Config, trip func(http.RoundTripper, *http.Request) (*http.Response, error)) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return RoundTripper(func(request *http.Request) (*http.Response, error) { return trip(next, request) })
	})
}
