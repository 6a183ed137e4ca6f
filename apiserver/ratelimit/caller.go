package ratelimit

import "net/netip"

// ipv6ClientBits is the length of an IPv6 client's prefix: a /64 is the smallest network that a site gets, and
// the client can choose any address in it.
const ipv6ClientBits = 64

// Caller is the party that a request is counted for. Create one with Key or Address.
type Caller struct {
	id                string
	address           netip.Prefix
	requestsPerMinute int
}

// Key returns the caller that holds the API key with this UID. A requestsPerMinute below one means
// DefaultRequestsPerMinute.
func Key(uid string, requestsPerMinute int) Caller {
	return Caller{id: "key:" + uid, requestsPerMinute: requestsPerMinute}
}

// Address returns the caller without a valid key at this address: IPv4 by address, IPv6 by /64. All clients
// without an address, as behind a Unix socket, are one caller.
func Address(address netip.Addr) Caller {
	address = address.Unmap().WithZone("")
	bits := address.BitLen()
	if address.Is6() {
		bits = ipv6ClientBits
	}
	network, err := address.Prefix(bits)
	if err != nil || !network.IsValid() {
		return Caller{id: "address:none"}
	}
	return Caller{address: network}
}

func (c Caller) limit() int64 {
	if c.requestsPerMinute < 1 {
		return DefaultRequestsPerMinute
	}
	return int64(c.requestsPerMinute)
}
