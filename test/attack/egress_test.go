package attack

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/needs"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// prey is a service that no webhook may reach. It listens on every loopback address, on one port.
type prey struct {
	port    string
	touched atomic.Int64
}

func newPrey(t *testing.T) *prey {
	t.Helper()
	p := &prey{port: "0"}
	count := func(_ net.Conn, state http.ConnState) {
		// Every connection counts as a breach, whatever is sent over it.
		if state == http.StateNew {
			p.touched.Add(1)
		}
	}
	for _, address := range []string{"127.0.0.1", "::1"} {
		listener, err := net.Listen("tcp", net.JoinHostPort(address, p.port))
		if err != nil && address == "::1" {
			t.Logf("without IPv6: %v", err)
			continue
		}
		harness.Must(t, err)
		p.port = strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		server.Listener.Close() //nolint:errcheck,gosec // replaced
		server.Listener, server.Config.ConnState = listener, count
		server.Start()
		t.Cleanup(server.Close)
	}
	return p
}

// lure is an endpoint that tries to make the controllers connect to a forbidden address.
type lure struct {
	what, url string
	// reasons are the accepted error messages of the attempt, any one of them.
	reasons []string
}

const (
	notPublic  = "address is not a public one"
	redirected = "redirect"
	unusable   = "cannot be used"
	// unreadable is the error for a port that does not exist.
	unreadable = "could not be read"
)

// addressLures name private addresses, in every notation.
func addressLures(p *prey) []lure {
	var lures []lure
	add := func(what, host string, reasons ...string) {
		schemes := []string{"http", "https"}
		if !full { // they share the dialer
			schemes = schemes[len(lures)%2:][:1]
		}
		for _, scheme := range schemes {
			lures = append(lures, lure{what + " by " + scheme, scheme + "://" + host + ":" + p.port + "/", reasons})
		}
	}
	for _, host := range []string{
		"127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1", "100.100.100.200", "169.254.0.1", "169.254.169.254",
		"169.254.170.2", "168.63.129.16", "192.0.0.1", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[fe80::1]", "[fec0::1]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "[2001:db8::1]", "[100::1]", "[2001::1]", "[5f00::1]",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:10.0.0.1]", "[::ffff:169.254.169.254]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::a9fe:a9fe]",
		"[64:ff9b:1::127.0.0.1]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[2001:0:7f00:1::]",
	} {
		add("the address "+host, host, notPublic)
	}
	// Hosts that only some parsers accept as addresses must be treated as names that do not exist,
	// or be refused.
	for _, host := range []string{
		"2130706433", "0x7f000001", "017700000001", "0x7f.0.0.1", "0177.0.0.1", "127.1", "127.0.1", "0", "127.0.0.01", "0127.0.0.1", "127.0.0.1.", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376",
		"169.254.43518", "169.16689662", "localhost", "LOCALHOST", "localhost.", "127.0.0.1.nip.attack.test",
	} {
		add("the host "+host, host, notPublic)
	}
	return lures
}

// nameLures name private addresses through names that look harmless.
func nameLures(p *prey) []lure {
	var lures []lure
	for what, meant := range map[string][]string{
		"loopback": {"127.0.0.1"}, "private": {"10.0.0.1"}, "metadata": {"169.254.169.254"}, "loopback6": {"::1"}, "mapped": {"::ffff:127.0.0.1"}, "nat64": {"64:ff9b::7f00:1"},
		"zero": {"0.0.0.0"}, "several": {"10.0.0.1", "127.0.0.1", "192.168.0.1"}, "both": {"127.0.0.1", "::1"}, "testnet-then-loopback": {"192.0.2.1", "127.0.0.1"},
	} {
		name := resolves(what, addresses(meant...))
		lures = append(lures, lure{"the name of " + what, "http://" + name + ":" + p.port + "/", []string{notPublic}})
	}
	return lures
}

// formLures are URLs of forms that are never sent to. The API server refuses most of them.
func formLures(p *prey) []lure {
	there := "127.0.0.1:" + p.port
	var lures []lure
	for _, text := range []string{
		"file:///etc/passwd", "gopher://" + there + "/_x", "ftp://" + there + "/", "dict://" + there + "/x", "ldap://" + there + "/", "unix:///run/x.sock", "http+unix://%2Frun%2Fx/", "jar:http://" + there + "!/",
		"javascript:x", "data:text/plain,x", "//" + there + "/", "/path", "", "http:/" + there, "http:" + there, "http:///" + there, "HTTP://" + there, "https:" + there, "tcp://" + there, "netdoc:///etc/passwd",
		"http://user:secret@" + there + "/", "http://" + allowedReceiver + "@" + there + "/", "http://" + allowedReceiver + ":80@" + there + "/", "http://" + allowedReceiver + "%40" + there + "/",
		"http://" + there + "#@" + allowedReceiver + "/", "http://" + there + "?@" + allowedReceiver + "/", "http://" + there + "\\@" + allowedReceiver + "/", "http://" + there + "%00." + allowedReceiver + "/",
		"http://" + there + "\t.example.com/", "http://" + there + "\r\nHost: x/", "http://" + there + " /", " http://" + there + "/", "http://\uff11\uff12\uff17.0.0.1:" + p.port + "/", "http://127\u30020\u30020\u30021:" + p.port + "/",
		"http://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3:" + p.port + "/", "http://[::1%25lo]:" + p.port + "/", "http://[fe80::1%25lo]:" + p.port + "/", "http://[::1]." + ":" + p.port + "/", "http://[127.0.0.1]:" + p.port + "/",
		"http://127.0.0.1:0/", "http://127.0.0.1:65536/", "http://127.0.0.1:-1/", "http://127.0.0.1:22/", "http://127.0.0.1:6379/", "http://127.0.0.1:2379/", "http://localhost:10250/", "http://127.0.0.1:x/",
	} {
		reasons := []string{notPublic, unusable}
		if strings.Contains(text, ":65536") {
			reasons = append(reasons, unreadable)
		}
		lures = append(lures, lure{"the URL " + text, text, reasons})
	}
	return lures
}

// TestEgress_NothingPrivateIsReached creates all lures at once and checks the first attempt for
// each.
func TestEgress_NothingPrivateIsReached(t *testing.T) {
	t.Parallel() // it mostly waits
	p := newPrey(t)
	lures := append(append(addressLures(p), nameLures(p)...), formLures(p)...)
	for some := range slices.Chunk(lures, webhooks.MaxServed) {
		o := newOrganization(t, "egress-"+letters(6), plenty)
		laid := map[string]lure{}
		for i, l := range some {
			name := fmt.Sprintf("lure-%d", i)
			endpoint := builder.WebhookEndpoint(name).In(o.namespace).URL(l.url).Events("webhook.ping").Build()
			switch err := target.env.Client.Create(t.Context(), endpoint); {
			case err == nil:
				laid[name] = l
			default:
				attempt(t, egress, apierrors.IsInvalid(err) && strings.Contains(err.Error(), "spec.url"), "%s: refused without the reason: %v", l.what, err)
			}
		}
		for name, first := range firstAttempts(t, o, laid) {
			l := laid[name]
			told := slices.ContainsFunc(l.reasons, func(reason string) bool { return strings.Contains(first.Message, reason) })
			attempt(t, egress, first.Outcome == v1alpha1.WebhookAttemptFailed && told && first.Code == 0,
				"%s: %s: the attempt says %s %d %q, want one of %q", l.what, l.url, first.Outcome, first.Code, first.Message, l.reasons)
		}
	}
	attempt(t, egress, p.touched.Load() == 0, "%d connections to what is private", p.touched.Load())
}

// firstAttempts waits until each endpoint has a finished attempt.
func firstAttempts(t *testing.T, o *tenant, laid map[string]lure) map[string]v1alpha1.WebhookAttempt {
	t.Helper()
	firsts := map[string]v1alpha1.WebhookAttempt{}
	harness.Eventually(t, func(g Gomega) {
		list := testenv.List(t, g, target.env, &v1alpha1.WebhookDeliveryList{}, client.InNamespace(o.namespace))
		for _, d := range list.Items {
			name := string(d.Spec.EndpointRef.Name)
			if _, ours := laid[name]; ours && len(d.Status.Attempts) > 0 && d.Status.Attempts[0].Outcome != v1alpha1.WebhookAttemptStarted {
				firsts[name] = d.Status.Attempts[0]
			}
		}
		g.Expect(firsts).To(HaveLen(len(laid)))
	})
	return firsts
}

// An allowed receiver cannot redirect to another address.
func TestEgress_RedirectsLeadNowhere(t *testing.T) {
	p := newPrey(t)
	targets := []string{
		"http://127.0.0.1:" + p.port + "/", "http://localhost:" + p.port + "/", "//127.0.0.1:" + p.port + "/", "https://127.0.0.1:" + p.port + "/", "http://[::1]:" + p.port + "/", "http://169.254.169.254/latest/meta-data/",
		"file:///etc/passwd", "gopher://127.0.0.1:" + p.port + "/_x", "/again", "",
	}
	statuses := []int{301, 302, 303, 307, 308, 300, 305}
	if !full {
		statuses = statuses[:1]
	}
	for some := range slices.Chunk(targets, webhooks.MaxServed/len(statuses)) {
		o := newOrganization(t, "redirects-"+letters(6), plenty)
		laid := map[string]lure{}
		for i, to := range some {
			for _, status := range statuses {
				receiver := listen(t, allowedReceiver, func(w http.ResponseWriter, _ *http.Request) {
					w.Header()["Location"] = []string{to}
					w.Header().Set("Alt-Svc", `h2="127.0.0.1:`+p.port+`"`)
					w.Header().Set("Refresh", "0; url="+to)
					w.WriteHeader(status)
				})
				name := fmt.Sprintf("redirect-%d-%d", i, status)
				laid[name] = lure{fmt.Sprintf("%d to %q", status, to), receiver, []string{redirected}}
				target.env.Create(t, builder.WebhookEndpoint(name).In(o.namespace).URL(receiver).Events("webhook.ping").Build())
			}
		}
		for name, first := range firstAttempts(t, o, laid) {
			attempt(t, egress, first.Outcome == v1alpha1.WebhookAttemptFailed && strings.Contains(first.Message, redirected),
				"%s: the attempt says %s %d %q", laid[name].what, first.Outcome, first.Code, first.Message)
		}
	}
	attempt(t, egress, p.touched.Load() == 0, "%d connections to what is private", p.touched.Load())
}

// A name that resolves to an allowed address at the first attempt, and to a private one at the
// next, is checked when it is dialled. So is a name that changes between two lookups.
func TestEgress_NamesWhoseAddressChangesAreCheckedWhenDialled(t *testing.T) {
	t.Parallel() // it mostly waits
	p := newPrey(t)
	o := newOrganization(t, "rebinding-"+letters(6), plenty)
	listener, err := net.Listen("tcp", net.JoinHostPort(allowedReceiver, p.port))
	if err != nil {
		needs.Missing(t, "port %s of %s, which all of 127.0.0.0/8 are on Linux: %v", p.port, allowedReceiver, err)
	}
	var received atomic.Int64
	harness.ServeOn(t, listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		received.Add(1)
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))

	name := resolves("turning", addresses(allowedReceiver), addresses("127.0.0.1"))
	at := url.URL{Scheme: "http", Host: net.JoinHostPort(name, p.port)}
	target.env.Create(t, builder.WebhookEndpoint("turning").In(o.namespace).URL(at.String()).Events("webhook.ping").Build())
	var second v1alpha1.WebhookAttempt
	harness.Eventually(t, func(g Gomega) {
		list := testenv.List(t, g, target.env, &v1alpha1.WebhookDeliveryList{}, client.InNamespace(o.namespace))
		g.Expect(list.Items).To(HaveLen(1))
		attempts := list.Items[0].Status.Attempts
		g.Expect(len(attempts)).To(BeNumerically(">=", 2))
		second = attempts[1]
		g.Expect(second.Outcome).NotTo(Equal(v1alpha1.WebhookAttemptStarted))
	})
	attempt(t, egress, strings.Contains(second.Message, notPublic), "the name turned, and the attempt says %s %d %q", second.Outcome, second.Code, second.Message)
	attempt(t, egress, p.touched.Load() == 0, "%d connections to what is private", p.touched.Load())
	harness.Same(t, "requests that the allowed receiver got, the first alone: else nothing has turned", int64(1), received.Load())
}
