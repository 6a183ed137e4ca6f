package faults

import (
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// maxPayload bounds how much of a request is read, in bytes.
const maxPayload = 8 << 20

// receiver receives webhooks, and may delay the answer to a request.
type receiver struct {
	url string

	mutex    sync.Mutex
	payloads map[string]string // by webhook-id
	requests map[string]int
	problems []string
	// hold, if set, is called for each request; true delays the answer until the connection is cut.
	hold func(id string) bool
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{payloads: map[string]string{}, requests: map[string]int{}}
	r.url = harness.Serve(t, r)
	return r
}

// ServeHTTP receives an event.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	content, err := io.ReadAll(io.LimitReader(request.Body, maxPayload))
	if err != nil {
		return // the sender was killed while it wrote
	}
	body, id := string(content), request.Header.Get("webhook-id")
	r.mutex.Lock()
	hold := r.hold
	r.mutex.Unlock()
	if hold != nil && hold(id) {
		<-request.Context().Done()
		panic(http.ErrAbortHandler)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.requests[id]++
	if have, known := r.payloads[id]; known && have != body {
		r.problems = append(r.problems, id+" came with two payloads: "+have+" and "+body)
	}
	r.payloads[id] = body
	w.WriteHeader(http.StatusNoContent)
}

// keepWaiting sets hold; nil delays no requests.
func (r *receiver) keepWaiting(hold func(id string) bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.hold = hold
}

// got returns the payload received under an id, and how often it was received.
func (r *receiver) got(id string) (string, int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.payloads[id], r.requests[id]
}

func (r *receiver) wrongs() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return append([]string{}, r.problems...)
}
