package kube

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// pipes listens for connections in memory: a test with a clock of its own cannot wait for those of the network.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	conn, open := <-p.conns
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.conns) })
	return nil
}

func (*pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// listWatchFrom returns a ListWatch of an API server that answers with send, and then sends nothing more over a
// connection that stays open. It fails requests that last for an hour.
func listWatchFrom(t *testing.T, send func(http.ResponseWriter, *http.Request)) (*ListWatch, context.Context) {
	t.Helper()
	return listWatchOver(t, send, nil)
}

// listWatchOver is listWatchFrom over connections that cannot be made if lost is not nil.
func listWatchOver(t *testing.T, send func(http.ResponseWriter, *http.Request), lost error) (*ListWatch, context.Context) {
	t.Helper()
	listener := &pipes{conns: make(chan net.Conn)}
	server := &httptest.Server{
		Listener: listener, EnableHTTP2: true,
		// The client would have to read the tickets while it writes, as pipes have no buffer.
		TLS: &tls.Config{SessionTicketsDisabled: true}, //nolint:gosec // the test's own
		Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // likewise
			harness.Same(t, "version of HTTP", 2, r.ProtoMajor)
			w.Header().Set("Content-Type", "application/json")
			send(w, r)
		})},
	}
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	reader, err := NewReader(&rest.Config{
		Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		Dial: func(context.Context, string, string) (net.Conn, error) {
			if lost != nil {
				return nil, lost
			}
			here, there := net.Pipe()
			listener.conns <- there
			return here, nil
		},
	})
	harness.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	return newListWatch(reader.Source(findings())), ctx
}

// flush sends the header and the text.
func flush(w http.ResponseWriter, text string) {
	fmt.Fprint(w, text)
	w.(http.Flusher).Flush()
}

// A proxy may answer the client's pings, and pass on nothing else.
func TestAListThatReceivesNothingIsGivenUp(t *testing.T) {
	item := oddFinding("f", `"spec":{"tool":"gosec"}`, 1)
	for reason, tc := range map[string]struct {
		send    func(http.ResponseWriter, *http.Request)
		givenUp bool
		after   time.Duration
	}{
		"before its header": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, true, listSilence},
		"after its first item": {func(w http.ResponseWriter, r *http.Request) {
			flush(w, `{"items":[`+item)
			<-r.Context().Done()
		}, true, listSilence},
		"it is slow": {func(w http.ResponseWriter, r *http.Request) {
			flush(w, `{"items":[`+item)
			for range 10 {
				harness.Pause(r.Context(), listSilence-time.Second)
				flush(w, ","+item)
			}
			flush(w, `]}`)
		}, false, 10 * (listSilence - time.Second)},
		"it is refused, and requested again by the client library": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		}, false, 5 * time.Minute},
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ctx := listWatchFrom(t, tc.send)
				begun := time.Now()
				_, err := s.Now(ctx)
				if errors.Is(err, errSilent) != tc.givenUp || err != nil && !tc.givenUp && !apierrors.IsTooManyRequests(err) {
					t.Errorf("error %v, want that it is given up: %t", err, tc.givenUp)
				}
				harness.Same(t, "it ends after", tc.after, time.Since(begun))
			})
		})
	}
}

// An error would be logged, and the reflector would list everything again.
func TestAWatchWhoseEndDoesNotArriveEndsAsIfItHad(t *testing.T) {
	for reason, tc := range map[string]struct {
		send     func(http.ResponseWriter)
		contacts int
	}{
		"before its header": {func(http.ResponseWriter) {}, 0},
		"after its header":  {func(w http.ResponseWriter) { flush(w, "") }, 1},
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ctx := listWatchFrom(t, func(w http.ResponseWriter, r *http.Request) {
					tc.send(w)
					<-r.Context().Done()
				})
				contacts := 0
				s.OnContact = func() time.Time { contacts++; return time.Time{} }
				begun := time.Now()
				watched, err := s.WatchWithContext(ctx, metav1.ListOptions{TimeoutSeconds: new(int64(300))})
				harness.Must(t, err)
				defer watched.Stop()
				for event := range watched.ResultChan() {
					t.Errorf("got %s %v", event.Type, event.Object)
				}
				harness.Same(t, "it ends after", 300*time.Second+watchGrace, time.Since(begun))
				harness.Same(t, "contacts", tc.contacts, contacts)
			})
		})
	}
}

// Otherwise nothing would show that the API server cannot be reached.
func TestAWatchThatDoesNotReachTheAPIServerIsNoContact(t *testing.T) {
	for reason, lost := range map[string]error{"timeout": os.ErrDeadlineExceeded, "reset": syscall.ECONNRESET} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ctx := listWatchOver(t, nil, &net.OpError{Op: "dial", Err: lost})
				s.OnContact = func() time.Time { t.Error("contact"); return time.Time{} }
				if watched, err := s.WatchWithContext(ctx, metav1.ListOptions{TimeoutSeconds: new(int64(300))}); err == nil {
					watched.Stop()
				}
			})
		})
	}
}
