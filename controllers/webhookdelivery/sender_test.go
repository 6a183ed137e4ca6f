package webhookdelivery

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"code.dny.dev/ssrf"
	. "github.com/onsi/gomega"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func try(s *sender, url string) result {
	return s.send(context.Background(), url, v1alpha1.WebhookEvent{ID: "d-1"}, "{}", time.Now(), nil)
}

func TestAReceiverHasFifteenSeconds(t *testing.T) {
	harness.Same(t, "the default timeout of an attempt", 15*time.Second, DefaultTimeout)
}

// Every kind of non-public address, in each of its spellings, is refused before a byte is sent.
func TestOnlyPublicAddressesAreDialled(t *testing.T) {
	s := newSender(Settings{Timeout: 5 * time.Second, Allowed: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}})
	for _, host := range []string{
		"127.0.0.1", "127.1.2.3", "168.63.129.16", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
		"224.0.0.1", "255.255.255.255", "[::1]", "[::]", "[fe80::1]", "[fd00::1]", "[ff02::1]",
		"[::ffff:127.0.0.1]", "[::ffff:169.254.169.254]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "localhost",
	} {
		got := try(s, "http://"+net.JoinHostPort(strings.Trim(host, "[]"), "9"))
		if got.outcome != v1alpha1.WebhookAttemptFailed || !strings.Contains(got.message, "--webhook-allow-cidr") {
			t.Errorf("%s: got %+v", host, got)
		}
	}
}

// On a cluster whose pods have global addresses, they are public to the operator.
func TestADeniedNetworkIsNotDialledEvenIfItIsPublicOrAllowed(t *testing.T) {
	denied := []netip.Prefix{netip.MustParsePrefix("3ffe:1::/48"), netip.MustParsePrefix("127.0.0.0/31")}
	s := newSender(Settings{Timeout: 5 * time.Second, Allowed: loopback.Allowed, Denied: denied})
	for host, want := range map[string]string{
		"3ffe:1::1": "--webhook-deny-cidr", "127.0.0.1": "--webhook-deny-cidr", "::ffff:127.0.0.1": "--webhook-deny-cidr",
		"127.0.0.2": "the connection was refused", "::1": "--webhook-allow-cidr",
	} {
		got := try(s, "http://"+net.JoinHostPort(host, "9"))
		if got.outcome != v1alpha1.WebhookAttemptFailed || !strings.Contains(got.message, want) {
			t.Errorf("%s: got %+v, want %q", host, got, want)
		}
	}
}

// On a cluster with IPv6 alone, receivers with IPv4 alone have such addresses.
func TestNAT64LeadsToPublicAddressesOnly(t *testing.T) {
	own := []netip.Prefix{netip.MustParsePrefix("64:ff9b:1::/96"), netip.MustParsePrefix("2a01:4f8:1:64::/96")}
	check := guard(Settings{
		Allowed: []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), own[0], netip.MustParsePrefix("10.9.0.0/16")},
		Denied:  []netip.Prefix{netip.MustParsePrefix("1.1.1.0/24")}, NAT64: own,
	})
	for _, c := range []struct {
		reason, address string
		want            error
	}{
		{"loopback", "64:ff9b::7f00:1", ssrf.ErrProhibitedIP},
		{"the cloud's metadata", "64:ff9b::a9fe:a9fe", ssrf.ErrProhibitedIP},
		{"a private one that is allowed", "64:ff9b::a09:1", nil},
		{"a public one that is denied", "64:ff9b::101:101", errDenied},
		{"a public one", "64:ff9b::808:808", nil},
		{"the cloud's metadata, by a prefix for local use", "64:ff9b:1::a9fe:a9fe", ssrf.ErrProhibitedIP},
		{"a private one, by the network's own prefix", "2a01:4f8:1:64::a00:5", ssrf.ErrProhibitedIP},
		{"a public one, by the network's own prefix", "2a01:4f8:1:64::808:808", nil},
	} {
		if err := check("tcp6", net.JoinHostPort(c.address, "443"), nil); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.reason, err, c.want)
		}
	}
}

// Else a tenant could ask the cluster's DNS, a name per attempt, which Services other namespaces have.
func TestARefusedAddressIsReportedLikeANameThatDoesNotExist(t *testing.T) {
	said := map[string]bool{}
	for _, err := range []error{
		&net.DNSError{Err: "no such host", Name: "receiver.example", IsNotFound: true},
		&net.DNSError{Err: "i/o timeout", Name: "receiver.example", IsTimeout: true},
		ssrf.ErrProhibitedIP, errDenied,
	} {
		got := explain("receiver.example", &net.OpError{Op: "dial", Err: err}, time.Second)
		said[got] = true
		harness.Contains(t, "what it says of "+err.Error(), got, "resolved")
	}
	harness.Same(t, "texts", 1, len(said))
	for err, flag := range map[error]string{ssrf.ErrProhibitedIP: "--webhook-allow-cidr", errDenied: "--webhook-deny-cidr"} {
		if got := explain("10.1.2.3", err, time.Second); strings.Contains(got, "resolved") || !strings.Contains(got, flag) {
			t.Errorf("of an address and %v it says %q", err, got)
		}
	}
}

func TestWhatWentWrongIsSaidWithoutTheURL(t *testing.T) {
	s := newSender(Settings{Timeout: 5 * time.Second, Allowed: loopback.Allowed})
	unknown := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(unknown.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	picky := httptest.NewUnstartedServer(http.NotFoundHandler())
	picky.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return nil, errors.New("not you")
	}}
	picky.StartTLS()
	t.Cleanup(picky.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	harness.Must(t, err)
	harness.Must(t, closed.Close())
	cases := []struct{ reason, url, want string }{
		{"a certificate that nobody vouches for", unknown.URL, "TLS"},
		{"no TLS at all", strings.Replace(plain.URL, "http:", "https:", 1), "speaks http, not https"},
		{"a receiver that ends the handshake", picky.URL, "TLS"},
		{"nobody listens", "http://" + closed.Addr().String(), "refused"},
		{"a name that is none", "http://receiver.invalid", "resolved"},
		{"a URL that is none", "http://[::1", "cannot be used"},
		{"a port that does not exist", "http://127.0.0.1:84430", "its port must be"},
		{"a scheme that is not sent to", "ftp://127.0.0.1", "could not be read"},
	}
	for _, c := range cases {
		got := try(s, c.url+"/a-credential")
		if !strings.Contains(got.message, c.want) || strings.Contains(got.message, "credential") || got.code != 0 {
			t.Errorf("%s: got %+v, want %q", c.reason, got, c.want)
		}
	}
}

func TestAProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	transport := newSender(Settings{Timeout: time.Second}).client.Transport.(*http.Transport)
	if transport.Proxy != nil {
		t.Error("there is a proxy")
	}
}

// The time of an attempt is far off: without an end of its own, the body would be waited for until then.
func TestABodyThatDoesNotEndDelaysNoSuccess(t *testing.T) {
	left := make(chan struct{})
	url := harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body) // or the end of the connection would go unnoticed
		w.WriteHeader(http.StatusAccepted)
		harness.NoError(t, "send the header", http.NewResponseController(w).Flush())
		<-request.Context().Done()
		close(left)
	}))
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	got := newSender(Settings{Timeout: time.Hour, Allowed: loopback.Allowed}).
		send(ctx, url, v1alpha1.WebhookEvent{ID: "d-1"}, "{}", time.Now(), nil)
	harness.Same(t, "the end of the time", nil, ctx.Err())
	succeeds(NewWithT(t), got)
	harness.Same(t, "the code", int32(http.StatusAccepted), got.code)
	<-left
}

// relay forwards connections to a server.
type relay struct {
	net.Listener
	// accepted counts the connections; the first cut of them forward nothing any more, and stay open.
	accepted, cut atomic.Int32
	// stopped is locked while nothing is forwarded; held counts what waits to be.
	stopped sync.RWMutex
	held    atomic.Int32
}

func newRelay(t *testing.T, server string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed by the test
	harness.Must(t, err)
	r := &relay{Listener: listener}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = in.Close() })
			out, err := net.Dial("tcp", server) //nolint:noctx // local
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = out.Close() })
			number := r.accepted.Add(1)
			go func() { _, _ = io.Copy(relayed{in, r, number}, out) }()
			go func() { _, _ = io.Copy(relayed{out, r, number}, in) }()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	return r
}

// relayed is one direction of a relay's connection.
type relayed struct {
	net.Conn
	of     *relay
	number int32
}

func (r relayed) Write(data []byte) (int, error) {
	r.of.held.Add(1)
	defer r.of.held.Add(-1)
	r.of.stopped.RLock()
	defer r.of.stopped.RUnlock()
	if r.number <= r.of.cut.Load() {
		return len(data), nil
	}
	return r.Conn.Write(data)
}

// relayedHTTP2 returns a relay to a receiver that speaks HTTP/2, and a function that makes an attempt through it.
func relayedHTTP2(t *testing.T, timeout time.Duration) (*relay, func() result) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		harness.Same(t, "the major version of HTTP", 2, request.ProtoMajor)
		_, _ = io.Copy(io.Discard, request.Body) // or the stream is reset after the response
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	r := newRelay(t, server.Listener.Addr().String())
	s := newSender(Settings{Timeout: timeout, Allowed: loopback.Allowed})
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	s.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	attempt := func() result { return try(s, "https://"+r.Addr().String()) }
	harness.Eventually(t, func(g Gomega) { succeeds(g, attempt()) })
	return r, attempt
}

func succeeds(g Gomega, got result) {
	g.Expect(got.outcome).To(Equal(v1alpha1.WebhookAttemptSucceeded), got.message)
}

// A receiver's host that is switched off closes no connection.
func TestAConnectionThatDiesSilentlyIsReplaced(t *testing.T) {
	t.Parallel() // it waits for a ping that nobody answers
	r, attempt := relayedHTTP2(t, 3*time.Second)
	before := r.accepted.Load()
	r.cut.Store(before)
	harness.Eventually(t, func(g Gomega) { succeeds(g, attempt()) })
	if r.accepted.Load() == before {
		t.Error("a cut connection was used")
	}
}

// A receiver whose host is overloaded answers no ping either.
func TestABusyReceiverKeepsItsConnection(t *testing.T) {
	const timeout = 3 * time.Second
	r, attempt := relayedHTTP2(t, timeout)
	succeeds(NewWithT(t), attempt()) // so nothing of the handshake is under way
	r.stopped.Lock()
	// The connection was idle, and is pinged just before the attempt.
	harness.Eventually(t, func(g Gomega) { g.Expect(r.held.Load()).NotTo(BeZero()) })
	time.AfterFunc(timeout*3/4, r.stopped.Unlock)
	succeeds(NewWithT(t), attempt())
}
