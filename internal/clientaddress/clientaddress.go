// Package clientaddress determines which address a request came from, behind proxies.
package clientaddress

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ipv4InIPv6Bits is the length of the prefix of IPv4-mapped IPv6 addresses.
const ipv4InIPv6Bits = 96

// Of returns the address of the client that sent the request: the peer's address or, if the peer is a trusted proxy,
// the right-most address of X-Forwarded-For that is not a trusted proxy itself. Everything to the left of it was
// written by the client and proves nothing.
//
// If the header is malformed up to that address, the result is the peer's address; if it names only trusted proxies,
// the result is the left-most. The result has no zone, and an IPv4-mapped IPv6 address becomes IPv4. It is the zero
// Addr if the peer has no address, as on a Unix socket.
//
// Forwarded and X-Real-IP are not read, because a proxy that writes one of the three headers forwards the others as the
// client sent them.
func Of(request *http.Request, trusted []netip.Prefix) netip.Addr {
	peer, ok := parse(request.RemoteAddr)
	if !ok || !contains(trusted, peer) {
		return peer
	}
	client := peer
	// Each proxy appends to the last header line or adds a line, with the same meaning: the newest address is at the end.
	for rest, more := strings.Join(request.Header.Values("X-Forwarded-For"), ","), true; more; {
		var hop string
		rest, hop, more = cutLast(rest)
		address, ok := parse(strings.TrimSpace(hop))
		if !ok {
			return peer
		}
		if !contains(trusted, address) {
			return address
		}
		client = address
	}
	return client
}

// ParseTrusted parses the networks of trusted proxies: prefixes such as 10.0.0.0/8, or single
// addresses. A prefix that contains every address is refused, because with it each client could
// choose its own address.
func ParseTrusted(networks []string) ([]netip.Prefix, error) {
	trusted := make([]netip.Prefix, 0, len(networks))
	for _, network := range networks {
		prefix, err := parsePrefix(network)
		if err != nil {
			return nil, fmt.Errorf("trusted proxy %q: %w; give a network such as 10.0.0.0/8 or an address", network, err)
		}
		if prefix.Bits() == 0 {
			return nil, fmt.Errorf("trusted proxy %q holds every address, so any client could choose its own; name the proxies' networks", network)
		}
		trusted = append(trusted, prefix)
	}
	return trusted, nil
}

func parsePrefix(network string) (netip.Prefix, error) {
	if !strings.Contains(network, "/") {
		address, err := netip.ParseAddr(network)
		if err != nil {
			return netip.Prefix{}, err
		}
		address = normal(address)
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(network)
	if err != nil {
		return netip.Prefix{}, err
	}
	if prefix.Addr().Is4In6() && prefix.Bits() >= ipv4InIPv6Bits {
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-ipv4InIPv6Bits)
	}
	return prefix.Masked(), nil
}

// parse reads an address, with or without a port: some proxies append one.
func parse(text string) (netip.Addr, bool) {
	bare := text
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		bare = text[1 : len(text)-1]
	}
	if address, err := netip.ParseAddr(bare); err == nil {
		return normal(address), true
	}
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return normal(withPort.Addr()), true
	}
	return netip.Addr{}, false
}

// normal maps the addresses of one client to one form: it drops the zone, which names a local
// interface, and unmaps IPv4, since a dual-stack listener shows IPv4 peers as IPv6.
func normal(address netip.Addr) netip.Addr {
	return address.Unmap().WithZone("")
}

func contains(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(address) })
}

// cutLast splits a list at its last comma.
func cutLast(list string) (rest, last string, more bool) {
	if i := strings.LastIndexByte(list, ','); i >= 0 {
		return list[:i], list[i+1:], true
	}
	return "", list, false
}
