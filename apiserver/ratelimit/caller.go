package ratelimit

import "net/netip"

// ipv6ClientBits is the length of the network that one IPv6 client has to itself: a /64 is the
// least that a site is given, and all its addresses are the client's to choose from.
const ipv6ClientBits = 64

// Caller is whoever a request is counted for. Make one with Key or Address.
type Caller struct {
	id                string
	address           netip.Prefix
	requestsPerMinute int
}

// Key is the caller that holds the API key with this UID. A requestsPerMinute below one stands
// for DefaultRequestsPerMinute.
func Key(uid string, requestsPerMinute int) Caller {
	return Caller{id: "key:" + uid, requestsPerMinute: requestsPerMinute}
}

// Address is the caller without a valid key at this address: IPv4 by address, IPv6 by /64.
// Clients without an address, as behind a Unix socket, are one caller.
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
