package apiserver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// A body that keeps arriving in single bytes does not occupy a slot forever.
func TestABodyThatTricklesEndsAtItsTime(t *testing.T) {
	t.Parallel() // it mostly waits
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := &pacedBody{body: r.Body, control: http.NewResponseController(w), end: time.Now().Add(200 * time.Millisecond)}
		_, err := io.Copy(io.Discard, body)
		ended <- err
	}))
	defer server.Close()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	harness.Must(t, err)
	defer conn.Close() //nolint:errcheck // the test's own
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
	harness.Must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var trickling sync.WaitGroup
	trickling.Go(func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			_, _ = io.WriteString(conn, "a") // expected to fail once the server closes the connection
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	})
	defer trickling.Wait()
	defer stop()
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the body ended with %v", err)
	}
}

// deadlines records the read deadline of a connection.
type deadlines struct {
	http.ResponseWriter
	read time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error { d.read = at; return nil }

// Net/http would cancel the request at the deadline, although its client waits for the response.
func TestAfterABodyNoDeadlineEndsTheWaitForTheResponse(t *testing.T) {
	d := &deadlines{ResponseWriter: httptest.NewRecorder()}
	body := &pacedBody{body: strings.NewReader("{}"), control: http.NewResponseController(d), end: time.Now().Add(time.Hour)}
	if _, err := body.Read(make([]byte, 2)); err != nil || d.read.IsZero() {
		t.Errorf("the deadline within the body is %s: %v", d.read, err)
	}
	if _, err := body.Read(make([]byte, 2)); !errors.Is(err, io.EOF) || !d.read.IsZero() {
		t.Errorf("the deadline after the body is %s: %v", d.read, err)
	}
	// It reads what is left of a body that ended with an error, and would wait for it forever.
	broken := &pacedBody{body: iotest.ErrReader(os.ErrDeadlineExceeded), control: http.NewResponseController(d), end: time.Now().Add(time.Hour)}
	if _, err := broken.Read(make([]byte, 2)); err == nil || d.read.IsZero() {
		t.Errorf("the deadline after a body that came too slowly is %s: %v", d.read, err)
	}
}
