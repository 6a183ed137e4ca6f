package ratelimit

import (
	"fmt"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxAddresses is how many addresses without a key a replica counts separately in a window.
	maxAddresses = 16384

	// overflowCounters is how many counters all further addresses share. A client that is limited too early for
	// this reason would have got a 401 anyway, except for a login to the console, the contract and /docs.
	overflowCounters = 1024
)

// addresses assigns a counter to each address, and bounds the number of counters, in memory and in Redis.
// Otherwise a sender with many addresses could fill both.
type addresses struct {
	capacity int
	window   time.Duration
	// seed is secret: a sender with many addresses that knew it could use up the shared counter of another address.
	seed maphash.Seed

	mu sync.Mutex
	// An address seen in the last window keeps its counter, because it may have used part of its limit.
	current, previous map[netip.Prefix]struct{}
	since             time.Time
}

func newAddresses(capacity int, window time.Duration) *addresses {
	return &addresses{capacity: capacity, window: window, seed: maphash.MakeSeed(), current: map[netip.Prefix]struct{}{}}
}

// id returns the name of the counter of an address.
func (a *addresses) id(address netip.Prefix, now time.Time) string {
	if !a.admit(address, now) {
		return a.overflowID(address)
	}
	return "address:" + address.String()
}

// admit reports whether an address has its own counter.
func (a *addresses) admit(address netip.Prefix, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rotate(now)
	if _, known := a.current[address]; known {
		return true
	}
	if len(a.current) < a.capacity {
		a.current[address] = struct{}{}
		return true
	}
	_, known := a.previous[address]
	return known
}

// rotate drops the addresses that were last seen more than a window ago.
func (a *addresses) rotate(now time.Time) {
	switch age := now.Sub(a.since); {
	case age < a.window:
		return
	case age < 2*a.window:
		a.previous = a.current
	default:
		a.previous = nil
	}
	a.current = map[netip.Prefix]struct{}{}
	a.since = now
}

// overflowID returns the name of a shared counter. Each replica assigns the same counters in its own way.
func (a *addresses) overflowID(address netip.Prefix) string {
	return fmt.Sprintf("overflow:%d", maphash.Comparable(a.seed, address)%overflowCounters)
}
