package apiserver

import (
	"math"
	"net/http"
	"testing"
)

// allocationRuns is how many requests are averaged.
const allocationRuns = 200

// The allocations of a request are few, and depend neither on the number of findings nor on the size of a page.
func TestAllocationsOfARequestAreBounded(t *testing.T) {
	const (
		few, many = 1000, 4000
		// Upper bounds for a page and for one finding, with room for a new release of Go or a library.
		maxOfPage, maxOfOne = 140, 55
		// noise allows for the race detector, and for garbage collections that empty pools.
		noise = 10
	)
	for _, target := range []string{
		"/v1/findings?size=100", "/v2/findings?size=100", "/v1/findings?size=100&status=open&severity=high",
		"/v1/reviews?size=10", "/v1/reviews?size=10&sort=pr_title&start_time=2026-03-01T08:30:00Z", "/v2/repos?size=10",
	} {
		little, much := facadeOf(t, few).allocations(target), facadeOf(t, many).allocations(target)
		t.Logf("%s: %.0f allocations of %d findings, %.0f of %d", target, little, few, much, many)
		if much > maxOfPage {
			t.Errorf("%s: %.0f allocations, at most %d are expected", target, much, maxOfPage)
		}
		if much > little+noise {
			t.Errorf("%s: %.0f allocations of %d findings, %.0f of %d", target, little, few, much, many)
		}
	}
	f := facadeOf(t, many)
	ten, hundred := f.allocations("/v1/findings?size=10"), f.allocations("/v1/findings?size=100")
	if hundred > ten+noise {
		t.Errorf("a page of 10 takes %.0f allocations and one of 100 takes %.0f", ten, hundred)
	}
	one := f.allocations("/v2/repos/" + f.placeOf(t, "f-00000007"))
	t.Logf("one finding: %.0f allocations", one)
	if one > maxOfOne {
		t.Errorf("one finding takes %.0f allocations", one)
	}
}

// allocations returns the average number of allocations of a request.
func (f *bigFacade) allocations(target string) float64 {
	request := f.request(http.MethodGet, target, "")
	answer := &discarded{header: http.Header{}}
	least := math.Inf(1)
	for range 10 { // goroutines of other tests can only add to it
		least = min(least, testing.AllocsPerRun(allocationRuns/10, func() {
			clear(answer.header)
			f.ServeHTTP(answer, request)
		}))
	}
	return least
}
