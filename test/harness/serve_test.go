package harness

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are sent to it.
type pipes chan net.Conn

// Accept implements net.Listener.
func (p pipes) Accept() (net.Conn, error) {
	if conn, open := <-p; open {
		return conn, nil
	}
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (p pipes) Close() error {
	close(p)
	return nil
}

// Addr implements net.Listener.
func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Handlers write variables of their test and report to it.
func TestNoHandlerOutlivesItsTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, ended := make(chan struct{}), make(chan struct{})
		t.Cleanup(func() {
			select {
			case <-ended:
			default:
				t.Error("the handler still runs")
			}
		})
		listener := make(pipes, 1)
		ServeOn(t, listener, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(begun)
			<-r.Context().Done()
			Pause(context.WithoutCancel(r.Context()), time.Second) // it still works after its client is gone
			close(ended)
		}))
		client, server := net.Pipe()
		listener <- server
		_, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		Must(t, err)
		<-begun
	})
}
