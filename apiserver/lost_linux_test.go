package apiserver

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// The stream of a client that vanished does not keep its place for a quarter of an hour, and a client has as long for
// a chunk of an export as before.
func TestALostClientIsGivenUpSoonButAfterASlowOne(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		got := make(chan time.Duration, 1)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			connection, _ := r.Context().Value(connectionKey{}).(net.Conn)
			if secure, is := connection.(*tls.Conn); is {
				connection = secure.NetConn()
			}
			raw, err := connection.(*net.TCPConn).SyscallConn()
			if err == nil {
				err = raw.Control(func(fd uintptr) {
					set, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
					harness.NoError(t, "read TCP_USER_TIMEOUT", err)
					got <- time.Duration(set) * time.Millisecond
				})
			}
			harness.NoError(t, "reach the socket", err)
		}))
		server.Config.ConnContext = withConnection
		map[bool]func(){false: server.Start, true: server.StartTLS}[encrypted]()
		answer, err := server.Client().Get(server.URL)
		harness.Must(t, err)
		answer.Body.Close() //nolint:errcheck,gosec // nothing to read
		server.Close()
		if after := <-got; after <= writeTimeout || after > 3*time.Minute {
			t.Errorf("TLS %t: a client is lost after %s, want a little more than %s", encrypted, after, writeTimeout)
		}
	}
}
