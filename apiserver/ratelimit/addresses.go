package ratelimit

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxAddresses is how many addresses without a key a replica tells apart in a window.
	maxAddresses = 16384

	// overflowCounters is how many counters the addresses beyond that share. Whom that limits
	// too early would have been told 401 instead.
	overflowCounters = 1024
)

// addresses names the counter of each address, and bounds how many counters there are: in
// memory and in Redis, where anyone who sends from many addresses could fill them otherwise.
type addresses struct {
	capacity int
	window   time.Duration

	mu sync.Mutex
	// An address seen in the last window keeps its counter: it may have used some of it up.
	current, previous map[netip.Prefix]struct{}
	since             time.Time
}

func newAddresses(capacity int, window time.Duration) *addresses {
	return &addresses{capacity: capacity, window: window, current: map[netip.Prefix]struct{}{}}
}

// id returns the name of the counter of an address.
func (a *addresses) id(address netip.Prefix, now time.Time) string {
	if !a.admit(address, now) {
		return overflowID(address)
	}
	return "address:" + address.String()
}

// admit says whether an address has a counter to itself.
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

// rotate forgets the addresses that were last seen more than a window ago.
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

// overflowID is the same on every replica, since they share the counter.
func overflowID(address netip.Prefix) string {
	bytes := address.Addr().As16()
	hash := fnv.New32a()
	_, _ = hash.Write(bytes[:]) // a hash has no way to fail
	return fmt.Sprintf("overflow:%d", hash.Sum32()%overflowCounters)
}
