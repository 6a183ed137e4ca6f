package e2e

import (
	"encoding/base64"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// oneInFails: one in that many events is refused at its first attempt.
const oneInFails = 50

// receiver acts as a third-party program: it knows the secrets and the specification of Standard
// Webhooks 1.0.0, but none of this project's code. It refuses a few events once.
type receiver struct {
	url string
	// isFirst reports whether the sender is making its first attempt for an event. An event whose
	// first attempt was interrupted by a kill must not also be refused, or the next attempt is
	// minutes away.
	isFirst func(id string) bool
	seed    uint64
	// gate holds up every event but pings until it is closed.
	gate chan struct{}

	mutex    sync.Mutex
	keys     map[string][]byte
	events   map[string]*receivedEvent
	requests int
	refused  int
	problems []string
}

// receivedEvent is what was received under one webhook-id.
type receivedEvent struct {
	endpoint string
	payload  string
	requests int
	accepted bool
}

func newReceiver(t *testing.T, seed uint64) *receiver {
	t.Helper()
	r := &receiver{seed: seed, gate: make(chan struct{}), keys: map[string][]byte{}, events: map[string]*receivedEvent{}}
	r.url = harness.Serve(t, r)
	return r
}

// expect sets the secret of an endpoint in the form its owner reads it: "whsec_" and base64.
func (r *receiver) expect(t *testing.T, endpoint, secret string) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || !strings.HasPrefix(secret, "whsec_") || len(key) < 24 {
		t.Fatalf("the secret of %s is none by the specification: %v", endpoint, err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.keys[endpoint] = key
}

// ServeHTTP answers an event with 204; some events first get 500 or no answer at all.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	endpoint := strings.TrimPrefix(request.URL.Path, "/")
	body, err := io.ReadAll(io.LimitReader(request.Body, 1<<20))
	if err != nil {
		return // The sender was killed while it wrote.
	}
	if !strings.Contains(string(body), `"webhook.ping"`) {
		select {
		case <-r.gate:
		case <-request.Context().Done():
			return
		}
	}
	id := request.Header.Get("webhook-id")
	draw := fnv.New64a()
	fmt.Fprintf(draw, "%d %s", r.seed, id)
	fate := draw.Sum64()
	refuse := fate%oneInFails == 0 && r.isFirst(id)
	if !r.note(endpoint, request.Header, string(body), refuse) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	switch {
	case !refuse:
		w.WriteHeader(http.StatusNoContent)
	case fate/oneInFails%2 == 0:
		w.WriteHeader(http.StatusInternalServerError)
	default:
		panic(http.ErrAbortHandler) // net/http closes the connection.
	}
}

// note records a request and reports whether it is valid.
func (r *receiver) note(endpoint string, header http.Header, body string, refuse bool) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.requests++
	webhook, err := standardwebhooks.NewWebhookRaw(r.keys[endpoint])
	if len(r.keys[endpoint]) == 0 { // the library signs and verifies with an empty key too
		err = errors.New("nothing is expected there")
	}
	if err == nil {
		err = webhook.Verify([]byte(body), header)
	}
	if err != nil {
		r.problems = append(r.problems, fmt.Sprintf("%s at %s: %v", header.Get("webhook-id"), endpoint, err))
		return false
	}
	id := header.Get("webhook-id")
	event, known := r.events[id]
	if !known {
		event = &receivedEvent{endpoint: endpoint, payload: body}
		r.events[id] = event
	}
	if event.payload != body || event.endpoint != endpoint {
		r.problems = append(r.problems, fmt.Sprintf("%s came with two payloads or to two endpoints: %s at %s, %s at %s",
			id, event.payload, event.endpoint, body, endpoint))
	}
	event.requests++
	if refuse {
		r.refused++
	} else {
		event.accepted = true
	}
	return true
}

// counts returns the number of requests, of requests refused on purpose, and of received events.
func (r *receiver) counts() (requests, refused, events int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, event := range r.events {
		if event.accepted {
			events++
		}
	}
	return r.requests, r.refused, events
}

// all returns the events received so far, by webhook-id, and the problems with any request.
func (r *receiver) all() (map[string]receivedEvent, []string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	out := make(map[string]receivedEvent, len(r.events))
	for id, event := range r.events {
		out[id] = *event
	}
	return out, append([]string{}, r.problems...)
}
