package attack

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// overTLS starts a facade with a certificate, which enables HTTP/2.
func overTLS(t *testing.T) (*facade, *tls.Config) {
	t.Helper()
	certFile, keyFile := filepath.Join(target.folder, "tls.crt"), filepath.Join(target.folder, "tls.key")
	roots := harness.Certificate(t, certFile, keyFile)
	f, err := target.startFacade("--tls-cert-file="+certFile, "--tls-private-key-file="+keyFile)
	harness.Must(t, err)
	return f, &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}
}

// perUnread is what the server has assembled of a response when the client's window is full, in bytes: a chunk.
const perUnread = 320 << 10

// h2 is a connection whose frames are written one by one.
type h2 struct {
	conn   *tls.Conn
	framer *http2.Framer
	// ended is closed once the server has ended the connection.
	ended chan struct{}
}

func (f *facade) http2(t *testing.T, config *tls.Config) *h2 {
	t.Helper()
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", f.Address)
	harness.Must(t, err)
	c := &h2{conn: conn.(*tls.Conn), ended: make(chan struct{})}
	if got := c.conn.ConnectionState().NegotiatedProtocol; got != "h2" {
		t.Fatalf("the protocol is %q: HTTP/2 is not on", got)
	}
	harness.Must(t, c.conn.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { c.conn.Close() }) //nolint:errcheck,gosec // the test's own
	c.framer = http2.NewFramer(c.conn, c.conn)
	_, err = io.WriteString(c.conn, http2.ClientPreface)
	harness.Must(t, err)
	harness.Must(t, c.framer.WriteSettings())
	return c
}

// drain reads until the server ends the connection.
func (c *h2) drain() {
	defer close(c.ended)
	_, _ = io.Copy(io.Discard, c.conn) // how it ends does not matter
}

func headers(token string, more ...hpack.HeaderField) []byte {
	var out bytes.Buffer
	encoder := hpack.NewEncoder(&out)
	for _, field := range append([]hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "x"}, {Name: ":path", Value: "/v2/findings?size=1000"},
		{Name: "authorization", Value: "Bearer " + token},
	}, more...) {
		if err := encoder.WriteField(field); err != nil {
			panic(err) // a buffer takes everything
		}
	}
	return out.Bytes()
}

// Streams that are opened and reset as fast as possible (CVE-2023-44487), headers that are
// continued without end (CVE-2023-45288), and floods of frames that require an answer.
func TestInput_FloodsOverHTTP2CostLittle(t *testing.T) {
	o := tenants(t)[0]
	f, config := overTLS(t)
	good := &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: config.RootCAs, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}}
	frames := inForm(5_000, 100_000)
	opening := func(c *h2, i int, block []byte, ends bool) error {
		return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: block, EndStream: true, EndHeaders: ends}) //nolint:gosec // small
	}
	block := headers(o.token)
	for _, flood := range []struct {
		what string
		// frame writes the i-th frame.
		frame func(c *h2, i int) error
		// refused is set if the server must end the connection.
		refused bool
		// unread is how many answers may be under way that nobody reads: as many as a connection may have streams.
		unread int
	}{
		{"rapid reset", func(c *h2, i int) error {
			// Each request writes its headers in full, so that no header table has to match.
			if err := opening(c, i, headers(o.token), true); err != nil {
				return err
			}
			return c.framer.WriteRSTStream(uint32(2*i+1), http2.ErrCodeCancel) //nolint:gosec // small
		}, false, 100},
		{"streams that are never read", func(c *h2, i int) error { return opening(c, i, headers(o.token), true) }, false, 100},
		{"headers continued without end", func(c *h2, i int) error {
			if i == 0 {
				return opening(c, 0, block, false)
			}
			return c.framer.WriteContinuation(1, false, bytes.Repeat(headers(o.token, hpack.HeaderField{Name: "x", Value: "y"})[:1], 8))
		}, true, 0},
		{"pings", func(c *h2, i int) error { return c.framer.WritePing(false, [8]byte{byte(i)}) }, false, 0},
		{"settings", func(c *h2, _ int) error {
			return c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65535})
		}, false, 0},
		{"windows", func(c *h2, _ int) error { return c.framer.WriteWindowUpdate(0, 1) }, false, 0},
		{"frames of an unknown type", func(c *h2, _ int) error { return c.framer.WriteRawFrame(0xfe, 0, 0, make([]byte, 16)) }, false, 0},
		{"streams of even numbers", func(c *h2, i int) error {
			return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 2), BlockFragment: block, EndHeaders: true}) //nolint:gosec // small
		}, true, 0},
		{"a table that is too large", func(c *h2, i int) error { return opening(c, i, []byte{0x3f, 0xff, 0xff, 0xff, 0xff, 0x0f}, true) }, true, 0},
	} {
		watcher := standBy(t, good, "https://"+f.Address, tenants(t)[1])
		memory := follow(t, f)
		c := f.http2(t, config)
		go c.drain()
		var failed error
		for i := 0; i < frames && failed == nil; i++ {
			failed = flood.frame(c, i)
		}
		if flood.refused {
			select {
			case <-c.ended:
			case <-time.After(patience):
				attempt(t, inputOf, false, "HTTP/2, %s: the connection is still open", flood.what)
			}
		}
		memory.bounded(t, inputOf, atRest+float64(flood.unread*perUnread), "HTTP/2, "+flood.what)
		watcher.leave(t, inputOf, "HTTP/2, "+flood.what)
		c.conn.Close() //nolint:errcheck,gosec // the test's own
	}
}
