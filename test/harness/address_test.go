package harness

import (
	"slices"
	"testing"
)

func TestNoAddressIsGivenAwayTwice(t *testing.T) {
	addresses, err := FreeAddresses(2*blockSize + 1) // more than are in two blocks
	Must(t, err)
	again, err := FreeAddresses(blockSize)
	Must(t, err)
	addresses = append(addresses, again...)
	slices.Sort(addresses)
	Same(t, "different addresses", 3*blockSize+1, len(slices.Compact(addresses)))
}

func TestNoTwoProcessesClaimTheSamePorts(t *testing.T) {
	_, err := FreeAddresses(1)
	Must(t, err)
	claimed := (own.next - 1 - firstPort) / blockSize
	var other ports
	if err := other.claim([]int{claimed}); err == nil {
		t.Errorf("ports from %d on are claimed twice", other.next)
	}
	for free := range claimed {
		if other.claim([]int{claimed, free}) == nil {
			t.Cleanup(func() { Must(t, other.claims[0].Close()) })
			Same(t, "the next port", firstPort+free*blockSize+1, other.next)
			return
		}
	}
}
