package clientaddress_test

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/appsec-dev/findings-operator/internal/clientaddress"
)

var proxies = []string{"10.0.0.0/8", "2001:db8:aaaa::/48", "::ffff:192.168.0.0/112", "fe80::1%eth0"}

func TestOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		peer   string
		header []string
		want   string
	}{
		"direct": {
			reason: "without a proxy the peer is the client",
			peer:   "203.0.113.7:4711", want: "203.0.113.7",
		},
		"untrusted peer": {
			reason: "anyone can send the header: only a trusted proxy is believed",
			peer:   "203.0.113.7:4711", header: []string{"198.51.100.1"}, want: "203.0.113.7",
		},
		"one proxy": {
			reason: "a trusted proxy appends whom it saw",
			peer:   "10.0.0.1:80", header: []string{"198.51.100.1"}, want: "198.51.100.1",
		},
		"forged entry": {
			reason: "what the client wrote stands to the left of what the proxy saw",
			peer:   "10.0.0.1:80", header: []string{"1.1.1.1, 198.51.100.1"}, want: "198.51.100.1",
		},
		"forged trusted entry": {
			reason: "a client cannot hide behind an address that it claims is a proxy's",
			peer:   "10.0.0.1:80", header: []string{"1.1.1.1, 10.9.9.9, 198.51.100.1"}, want: "198.51.100.1",
		},
		"two proxies": {
			reason: "an inner proxy names the outer one, which is trusted too",
			peer:   "10.0.0.1:80", header: []string{"198.51.100.1, 10.0.0.2"}, want: "198.51.100.1",
		},
		"several lines": {
			reason: "lines of one name are one list, in order",
			peer:   "10.0.0.1:80", header: []string{"1.1.1.1", "198.51.100.1", "10.0.0.2"}, want: "198.51.100.1",
		},
		"trusted alone": {
			reason: "a client within the trusted networks is the first of them",
			peer:   "10.0.0.1:80", header: []string{"10.0.0.3, 10.0.0.2"}, want: "10.0.0.3",
		},
		"no header": {
			reason: "a proxy that forwards nothing is the client, as its health checks are",
			peer:   "10.0.0.1:80", want: "10.0.0.1",
		},
		"malformed": {
			reason: "an entry that is no address ends the chain of belief",
			peer:   "10.0.0.1:80", header: []string{"198.51.100.1, unknown"}, want: "10.0.0.1",
		},
		"malformed on the left": {
			reason: "what stands left of the client is not read",
			peer:   "10.0.0.1:80", header: []string{"<script>, 198.51.100.1"}, want: "198.51.100.1",
		},
		"half a bracket": {
			reason: "half a bracket is no address",
			peer:   "10.0.0.1:80", header: []string{"[198.51.100.1"}, want: "10.0.0.1",
		},
		"empty entry": {
			reason: "an empty entry is no address",
			peer:   "10.0.0.1:80", header: []string{"198.51.100.1,"}, want: "10.0.0.1",
		},
		"empty header": {
			reason: "an empty header is no address",
			peer:   "10.0.0.1:80", header: []string{""}, want: "10.0.0.1",
		},
		"with ports": {
			reason: "some proxies append the client's port",
			peer:   "10.0.0.1:80", header: []string{"198.51.100.1:5000, 10.0.0.2:81"}, want: "198.51.100.1",
		},
		"IPv6 with a port": {
			reason: "an IPv6 address with a port stands in brackets",
			peer:   "10.0.0.1:80", header: []string{"[2001:db8::1]:5000"}, want: "2001:db8::1",
		},
		"IPv6 in brackets": {
			reason: "brackets without a port are written too",
			peer:   "[2001:db8:aaaa::1]:80", header: []string{"[2001:db8::1]"}, want: "2001:db8::1",
		},
		"zone": {
			reason: "a zone would give one client as many addresses as it likes",
			peer:   "[fe80::9%eth0]:80", want: "fe80::9",
		},
		"zone of a trusted proxy": {
			reason: "a zone in the list of trusted proxies is dropped as well",
			peer:   "[fe80::1%eth1]:80", header: []string{"198.51.100.1"}, want: "198.51.100.1",
		},
		"mapped peer": {
			reason: "a dual-stack listener shows an IPv4 proxy as IPv6",
			peer:   "[::ffff:10.0.0.1]:80", header: []string{"::ffff:198.51.100.1"}, want: "198.51.100.1",
		},
		"mapped network": {
			reason: "a network of mapped addresses is the IPv4 network",
			peer:   "192.168.3.4:80", header: []string{"198.51.100.1"}, want: "198.51.100.1",
		},
		"Unix socket": {
			reason: "a peer without an address gives none, whatever the header says",
			peer:   "@", header: []string{"198.51.100.1"}, want: "invalid IP",
		},
	}
	trusted, err := clientaddress.ParseTrusted(proxies)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := clientaddress.Of(request(c.peer, c.header...), trusted).String()
			if got != c.want {
				t.Errorf("got %s, want %s: %s", got, c.want, c.reason)
			}
		})
	}
}

func TestParseTrustedRefuses(t *testing.T) {
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
	if err != nil {
		f.Fatal(err)
	}
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
