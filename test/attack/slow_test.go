package attack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Bounds for the growth of the facade's heap.
const (
	// perConnection allows for the buffers and the goroutine of a connection, with a margin, in
	// bytes.
	perConnection = 96 << 10
	// atRest allows for normal fluctuation, in bytes.
	atRest = 64 << 20
)

// bystand starts a bystander with a new connection for each request, because new clients must be served too.
func bystand(t *testing.T) *bystander {
	t.Helper()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
	return standBy(t, client, "http://"+target.facade.Address, tenants(t)[1])
}

// crowd opens n connections, a limited number concurrently, and sends the head on each.
func crowd(t *testing.T, n int, head string) []net.Conn {
	t.Helper()
	conns := make([]net.Conn, n)
	var group errgroup.Group
	group.SetLimit(64)
	for i := range conns {
		group.Go(func() (err error) {
			conns[i], err = (&net.Dialer{Timeout: patience}).DialContext(t.Context(), "tcp", target.facade.Address)
			if err == nil {
				_, err = io.WriteString(conns[i], head)
			}
			return err
		})
	}
	err := group.Wait()
	t.Cleanup(func() {
		for _, conn := range conns {
			if conn != nil {
				conn.Close() //nolint:errcheck,gosec // the test's own
			}
		}
	})
	harness.Must(t, err)
	return conns
}

// closedByThem waits until the server has closed every connection, whatever it sends before.
func closedByThem(t *testing.T, conns []net.Conn, what string) {
	t.Helper()
	for i, conn := range conns {
		harness.Must(t, conn.SetReadDeadline(time.Now().Add(patience)))
		_, err := io.Copy(io.Discard, conn)
		if !attempt(t, inputOf, !errors.Is(err, os.ErrDeadlineExceeded), "%s: connection %d is still open", what, i) {
			return
		}
	}
}

// Headers that never end are cut off by a timeout, however steadily they arrive.
func TestInput_SlowHeadersAreCutOff(t *testing.T) {
	t.Parallel() // it mostly waits
	cutOff(t, "slow headers", "GET /v1/findings HTTP/1.1\r\nHost: x\r\nX-", perConnection)
}

// cutOff sends requests with that beginning until they are cut off, while other clients are served.
// each is how much a connection may cost, in bytes.
func cutOff(t *testing.T, what, beginning string, each int) {
	t.Helper()
	watcher := bystand(t)
	memory := follow(t, target.facade)
	n := 200
	conns := crowd(t, n, beginning)
	stop := harness.Background(t, func(ctx context.Context) error {
		for harness.Pause(ctx, 200*time.Millisecond) {
			for _, conn := range conns {
				_, _ = io.WriteString(conn, "a") // the connection should be closed
			}
		}
		return nil
	})
	closedByThem(t, conns, what)
	stop()
	memory.bounded(t, inputOf, atRest+float64(n*each), what)
	watcher.leave(t, inputOf, what)
}

// Idle connections cost only their buffers, and are closed by the server.
func TestInput_IdleConnectionsCostLittle(t *testing.T) {
	t.Parallel() // it mostly waits
	watcher := bystand(t)
	memory := follow(t, target.facade)
	n := inForm(300, 2000)
	o := tenants(t)[0]
	silent := crowd(t, n/2, "")
	used := crowd(t, n/2, "GET /v1/findings?size=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+o.token+"\r\n\r\n")
	for _, conn := range used {
		harness.Must(t, conn.SetReadDeadline(time.Now().Add(patience)))
		status, err := statusOf(conn)
		attempt(t, inputOf, err == nil && status == http.StatusOK, "one of %d connections got %d, %v", n, status, err)
	}
	memory.bounded(t, inputOf, atRest+float64(n*perConnection), fmt.Sprintf("%d idle connections", n))
	closedByThem(t, silent, "silent connections")
	watcher.leave(t, inputOf, "idle connections")
}

// A client that does not read its answers delays only itself.
func TestInput_AClientThatDoesNotReadBlocksNobody(t *testing.T) {
	watcher := bystand(t)
	memory := follow(t, target.facade)
	o := tenants(t)[0]
	n := inForm(50, 300)
	var wait sync.WaitGroup
	requests := []func() string{
		func() string {
			return "GET /v2/findings?size=1000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + o.token + "\r\n\r\n"
		},
		func() string {
			return "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nX-Forwarded-For: " + someAddress() + "\r\n\r\n"
		},
	}
	for _, request := range requests {
		for _, conn := range crowd(t, n, request()) {
			wait.Go(func() {
				// The system must not hold whole answers.
				err := conn.(*net.TCPConn).SetReadBuffer(4 << 10)
				// As much as the server accepts while its answers are not read.
				if err == nil && conn.SetWriteDeadline(time.Now().Add(2*time.Second)) == nil {
					_, _ = io.WriteString(conn, strings.Repeat(request(), 2000))
				}
				// An answer is under way.
				status := make([]byte, len("HTTP/1.1 200"))
				if err = errors.Join(err, conn.SetReadDeadline(time.Now().Add(patience))); err == nil {
					_, err = io.ReadFull(conn, status)
				}
				if err != nil || string(status) != "HTTP/1.1 200" {
					t.Errorf("got %q, %v", status, err)
				}
			})
		}
	}
	wait.Wait()
	memory.bounded(t, inputOf, atRest+float64(len(requests)*n*perConnection*2), "connections that are not read")
	watcher.leave(t, inputOf, "connections that are not read")
}

// Pipelined requests on one connection are answered in order.
func TestInput_PipelinedRequestsAreAnsweredInTurn(t *testing.T) {
	o := tenants(t)[0]
	n := 300
	var requests strings.Builder
	for i := range n {
		fmt.Fprintf(&requests, "GET /v1/findings?size=1 HTTP/1.1\r\nHost: x\r\nX-Request-Id: pipe-%d\r\nAuthorization: Bearer %s\r\n\r\n", i, o.token)
	}
	conn := dial(t, target.facade)
	defer conn.Close() //nolint:errcheck // the test's own
	var wait sync.WaitGroup
	wait.Go(func() { _, _ = io.WriteString(conn, requests.String()) }) // the answers show whether it arrived
	reader := bufio.NewReader(conn)
	for i := range n {
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			attempt(t, inputOf, false, "answer %d of %d: %v", i, n, err)
			break
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close() //nolint:errcheck,gosec // read to its end
		attempt(t, inputOf, err == nil && response.StatusCode == http.StatusOK && response.Header.Get("X-Request-Id") == fmt.Sprintf("pipe-%d", i),
			"answer %d: %d %q, %v", i, response.StatusCode, response.Header.Get("X-Request-Id"), err)
	}
	wait.Wait()
}

// Thousands of headers, and headers without an end, are refused or read, but not kept.
func TestInput_FloodsOfHeadersCostLittle(t *testing.T) {
	watcher := bystand(t)
	memory := follow(t, target.facade)
	for range inForm(20, 200) {
		var head strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&head, "X-%d: %d\r\n", i, i)
		}
		address := "X-Forwarded-For: " + someAddress() + "\r\n"
		for _, flood := range []string{head.String(), strings.Repeat("X: y\r\n", 4000), strings.Repeat("A", 100_000), strings.Repeat("Cookie: a=b\r\n", 5000), strings.Repeat(":\r\n", 20_000)} {
			status, closed := rawly(t, "GET /v1/findings HTTP/1.1\r\nHost: x\r\n"+address, flood, "\r\n\r\n")
			attempt(t, inputOf, status == 400 || status == 401 || status == 431 || status == 0 && closed, "a flood of %d bytes of headers: got %d", len(flood), status)
		}
	}
	memory.bounded(t, inputOf, atRest, "floods of headers")
	watcher.leave(t, inputOf, "floods of headers")
}
