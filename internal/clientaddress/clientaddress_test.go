package clientaddress_test

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/internal/clientaddress"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var proxies = []string{"10.0.0.0/8", "2001:db8:aaaa::/48", "::ffff:192.168.0.0/112", "fe80::1%eth0"}

func TestTheClientIsWhomTheTrustedProxiesSaw(t *testing.T) {
	cases := map[string]struct {
		peer   string
		header []string
		want   string
		reason string
	}{
		"direct":                  {"203.0.113.7:4711", nil, "203.0.113.7", "without a proxy the peer is the client"},
		"untrusted peer":          {"203.0.113.7:4711", []string{"198.51.100.1"}, "203.0.113.7", "anyone can send the header: only a trusted proxy is believed"},
		"one proxy":               {"10.0.0.1:80", []string{"198.51.100.1"}, "198.51.100.1", "a trusted proxy appends whom it saw"},
		"forged entry":            {"10.0.0.1:80", []string{"1.1.1.1, 198.51.100.1"}, "198.51.100.1", "what the client wrote stands to the left of what the proxy saw"},
		"forged trusted entry":    {"10.0.0.1:80", []string{"1.1.1.1, 10.9.9.9, 198.51.100.1"}, "198.51.100.1", "a client cannot hide behind an address that it claims is a proxy's"},
		"two proxies":             {"10.0.0.1:80", []string{"198.51.100.1, 10.0.0.2"}, "198.51.100.1", "an inner proxy names the outer one, which is trusted too"},
		"several lines":           {"10.0.0.1:80", []string{"1.1.1.1", "198.51.100.1", "10.0.0.2"}, "198.51.100.1", "lines of one name are one list, in order"},
		"trusted alone":           {"10.0.0.1:80", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3", "a client within the trusted networks is the first of them"},
		"no header":               {"10.0.0.1:80", nil, "10.0.0.1", "a proxy that forwards nothing is the client, as its health checks are"},
		"malformed":               {"10.0.0.1:80", []string{"198.51.100.1, unknown"}, "10.0.0.1", "an entry that is no address ends the chain of belief"},
		"malformed on the left":   {"10.0.0.1:80", []string{"<script>, 198.51.100.1"}, "198.51.100.1", "what stands left of the client is not read"},
		"half a bracket":          {"10.0.0.1:80", []string{"[198.51.100.1"}, "10.0.0.1", "half a bracket is no address"},
		"empty entry":             {"10.0.0.1:80", []string{"198.51.100.1,"}, "10.0.0.1", "an empty entry is no address"},
		"empty header":            {"10.0.0.1:80", []string{""}, "10.0.0.1", "an empty header is no address"},
		"with ports":              {"10.0.0.1:80", []string{"198.51.100.1:5000, 10.0.0.2:81"}, "198.51.100.1", "some proxies append the client's port"},
		"IPv6 with a port":        {"10.0.0.1:80", []string{"[2001:db8::1]:5000"}, "2001:db8::1", "an IPv6 address with a port stands in brackets"},
		"IPv6 in brackets":        {"[2001:db8:aaaa::1]:80", []string{"[2001:db8::1]"}, "2001:db8::1", "brackets without a port are written too"},
		"zone":                    {"[fe80::9%eth0]:80", nil, "fe80::9", "a zone would give one client as many addresses as it likes"},
		"zone of a trusted proxy": {"[fe80::1%eth1]:80", []string{"198.51.100.1"}, "198.51.100.1", "a zone in the list of trusted proxies is dropped as well"},
		"mapped peer":             {"[::ffff:10.0.0.1]:80", []string{"::ffff:198.51.100.1"}, "198.51.100.1", "a dual-stack listener shows an IPv4 proxy as IPv6"},
		"mapped network":          {"192.168.3.4:80", []string{"198.51.100.1"}, "198.51.100.1", "a network of mapped addresses is the IPv4 network"},
		"Unix socket":             {"@", []string{"198.51.100.1"}, "invalid IP", "a peer without an address gives none, whatever the header says"},
	}
	trusted, err := clientaddress.ParseTrusted(proxies)
	harness.Must(t, err)
	for name, c := range cases {
		harness.Same(t, name+": "+c.reason, c.want, clientaddress.Of(request(c.peer, c.header...), trusted).String())
	}
}

func TestNetworksThatAreNoneOrTrustAllAreRefused(t *testing.T) {
	cases := map[string]string{
		"":                "an empty entry is a mistake in the flags",
		"proxy.example":   "names can be pointed elsewhere",
		"10.0.0.0/33":     "the prefix is longer than the address",
		"0.0.0.0/0":       "every IPv4 address would be trusted",
		"::/0":            "every IPv6 address would be trusted",
		"::ffff:0:0/96":   "every IPv4 address would be trusted",
		"fe80::%eth0/10":  "a prefix has no zone",
		"10.0.0.1-10.0.2": "a range is not a prefix",
	}
	for network, reason := range cases {
		if _, err := clientaddress.ParseTrusted([]string{"10.0.0.0/8", network}); err == nil {
			t.Errorf("%q was accepted: %s", network, reason)
		} else if !strings.Contains(err.Error(), `"`+network+`"`) {
			t.Errorf("the error for %q does not name it: %v", network, err)
		}
	}
}

func FuzzOf(f *testing.F) {
	trusted, err := clientaddress.ParseTrusted(proxies)
	harness.Must(f, err)
	for _, seed := range []struct{ peer, first, second string }{
		{"10.0.0.1:80", "198.51.100.1, 10.0.0.2", ""},
		{"203.0.113.7:1", "198.51.100.1", "10.0.0.1"},
		{"[2001:db8:aaaa::1]:80", "[2001:db8::1]:5000", ",,"},
		{"[fe80::1%eth0]:80", "::ffff:198.51.100.1%x", "unknown"},
		{"@", "[", "]"},
	} {
		f.Add(seed.peer, seed.first, seed.second)
	}
	f.Fuzz(func(t *testing.T, peer, first, second string) {
		direct := clientaddress.Of(request(peer), nil)
		got := clientaddress.Of(request(peer, first, second), trusted)
		if got != got.Unmap().WithZone("") {
			t.Errorf("%s is mapped or has a zone", got)
		}
		peerIsTrusted := holds(trusted, direct)
		if !peerIsTrusted && got != direct {
			t.Errorf("%s was believed of the untrusted peer %s", got, direct)
		}
		// Compare with a plain implementation: nothing to the left of the result matters.
		if want := plainly(direct, peerIsTrusted, first+","+second, trusted); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// plainly implements the rule over the whole list, without optimization.
func plainly(peer netip.Addr, believed bool, list string, trusted []netip.Prefix) netip.Addr {
	if !believed {
		return peer
	}
	hops := strings.Split(list, ",")
	slices.Reverse(hops)
	client := peer
	for _, hop := range hops {
		client = clientaddress.Of(request(strings.TrimSpace(hop)), nil)
		if !client.IsValid() {
			return peer
		}
		if !holds(trusted, client) {
			return client
		}
	}
	return client
}

func holds(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(address) })
}

func request(peer string, header ...string) *http.Request {
	return &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": header}}
}
