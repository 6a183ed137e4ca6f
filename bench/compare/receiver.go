package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// receiver receives deliveries, and counts each delivery of an endpoint once.
type receiver struct {
	server  *http.Server
	address string
	// takes is how long an answer takes.
	takes time.Duration
	// got is called with the payload of each delivery when it arrives for the first time, one at a time. Optional.
	got func(payload []byte, at time.Time)

	lock sync.Mutex
	seen map[string]bool
}

func newReceiver(ctx context.Context, takes time.Duration,
	got func(payload []byte, at time.Time)) (*receiver, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{address: listener.Addr().String(), takes: takes, got: got, seen: map[string]bool{}}
	r.server = &http.Server{Handler: http.HandlerFunc(r.take), ReadHeaderTimeout: receiverTimeout}
	go r.server.Serve(listener) //nolint:errcheck // it ends when it is closed; what it does not take is missed
	return r, nil
}

func (r *receiver) url(i int) string { return fmt.Sprintf("http://%s/%d", r.address, i) }

func (r *receiver) take(w http.ResponseWriter, request *http.Request) {
	at := time.Now()
	payload, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.note(request, payload, at)
	harness.Pause(request.Context(), r.takes)
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) note(request *http.Request, payload []byte, at time.Time) {
	r.lock.Lock()
	defer r.lock.Unlock()
	delivery := request.URL.Path + " " + request.Header.Get("webhook-id")
	if r.got != nil && !r.seen[delivery] {
		r.got(payload, at)
	}
	r.seen[delivery] = true
}

// reset resets the counter.
func (r *receiver) reset() {
	r.lock.Lock()
	defer r.lock.Unlock()
	clear(r.seen)
}

// arrived returns how many deliveries have arrived since the last reset.
func (r *receiver) arrived() int {
	r.lock.Lock()
	defer r.lock.Unlock()
	return len(r.seen)
}

func (r *receiver) close() error { return r.server.Close() }
