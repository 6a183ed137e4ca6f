package load

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/test/harness"
)

const body = "0123456789"

// serve serves the handler and returns the server's address.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	return strings.TrimPrefix(harness.Serve(t, handler), "http://")
}

func run(t *testing.T, address string, requests ...[]byte) (measure.Sample, error) {
	t.Helper()
	return Run(t.Context(), Job{
		Target:      Target{Name: "test", Address: address, Requests: requests},
		Connections: 2, For: 20 * time.Millisecond,
	})
}

func TestAnswersAreCountedToTheirEnd(t *testing.T) {
	var served atomic.Int64
	for _, c := range []struct {
		form    string
		handler http.HandlerFunc
	}{
		{"with a length", func(w http.ResponseWriter, _ *http.Request) {
			served.Add(1)
			w.Header().Set("Content-Length", "10")
			w.Write([]byte(body)) //nolint:errcheck // the test sees what arrives
		}},
		{"in chunks", func(w http.ResponseWriter, _ *http.Request) {
			served.Add(1)
			for _, part := range []string{body[:3], body[3:]} {
				w.Write([]byte(part)) //nolint:errcheck // the test sees what arrives
				w.(http.Flusher).Flush()
			}
		}},
	} {
		served.Store(0)
		address := serve(t, c.handler)
		sample, err := run(t, address, Get(address, "/"))
		harness.NoError(t, c.form, err)
		if sample.Bytes != len(body) || sample.P50 <= 0 || sample.P99 < sample.P50 || sample.Elapsed <= 0 {
			t.Errorf("%s: %+v", c.form, sample)
		}
		// The first answer on each connection arrives before the clock starts.
		harness.Same(t, c.form+": answers that are counted", int(served.Load())-2, sample.Operations)
	}
}

func TestRequestsAreSentInTurn(t *testing.T) {
	var paths [2]atomic.Int64
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		paths[len(r.URL.Path)-1].Add(1)
	})
	_, err := run(t, address, Get(address, "/"), Get(address, "/a"))
	harness.Must(t, err)
	if a, b := paths[0].Load(), paths[1].Load(); a == 0 || b == 0 || max(a, b)-min(a, b) > 2 {
		t.Errorf("one was sent %d times, the other %d", a, b)
	}
}

func TestAnAnswerThatIsNot200SpoilsTheRun(t *testing.T) {
	var n atomic.Int64
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) > 5 {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	_, err := run(t, address, Get(address, "/"))
	harness.ErrorContains(t, "the run", err, "429")
}

func TestHeadersAndBodiesAreSent(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		content := make([]byte, len(body))
		r.Body.Read(content) //nolint:errcheck // what was not read differs
		if r.Method != http.MethodPatch || r.Header.Get("Authorization") != "Bearer x" || string(content) != body {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	_, err := run(t, address, Request("PATCH", address, "/", []byte(body), "Authorization: Bearer x"))
	harness.NoError(t, "the run", err)
}
