package apiserver

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
)

// allocationRuns are how many requests the allocations of one are the mean of.
const allocationRuns = 200

// What a request allocates depends neither on how many findings there are nor on how many a page
// holds, and is little.
func TestAllocationsOfARequestAreBounded(t *testing.T) {
	const (
		few, many = 1000, 4000
		// Bounds with room for another release of Go or a library: of a page that is put together, of
		// one that is ready, and of one finding.
		mostAnew, mostReady, mostOfOne = 140, 60, 55
		// noise is what a garbage collection that empties pools adds, and the race detector.
		noise = 10
	)
	for _, target := range []string{
		"/v1/findings?size=100", "/v2/findings?size=100", "/v1/findings?size=100&status=open&severity=high",
		"/v1/reviews?size=10", "/v1/reviews?size=10&sort=pr_title&start_time=2026-03-01T08:30:00Z", "/v2/repos?size=10",
	} {
		for _, of := range []struct {
			name string
			of   func(f *bigFacade, target string) float64
			most float64
		}{{"anew", (*bigFacade).allocationsAnew, mostAnew}, {"ready", (*bigFacade).allocations, mostReady}} {
			little, much := of.of(facadeOf(t, few), target), of.of(facadeOf(t, many), target)
			t.Logf("%s, %s: %.0f allocations of %d findings, %.0f of %d", target, of.name, little, few, much, many)
			if much > of.most {
				t.Errorf("%s, %s: %.0f allocations, at most %.0f are expected", target, of.name, much, of.most)
			}
			if much > little+noise {
				t.Errorf("%s, %s: %.0f allocations of %d findings, %.0f of %d", target, of.name, little, few, much, many)
			}
		}
	}
	f := facadeOf(t, many)
	ten, hundred := f.allocationsAnew("/v1/findings?size=10"), f.allocationsAnew("/v1/findings?size=100")
	if hundred > ten+noise {
		t.Errorf("a page of 10 takes %.0f allocations and one of 100 takes %.0f", ten, hundred)
	}
	one := f.allocations("/v2/repos/" + f.placeOf(t, "f-00000007"))
	t.Logf("one finding: %.0f allocations", one)
	if one > mostOfOne {
		t.Errorf("one finding takes %.0f allocations", one)
	}
}

// allocations are those of a page that is asked for over and over.
func (f *bigFacade) allocations(target string) float64 {
	request := f.request(http.MethodGet, target, "")
	answer := &discarded{header: http.Header{}}
	return testing.AllocsPerRun(allocationRuns, func() {
		clear(answer.header)
		f.ServeHTTP(answer, request)
	})
}

// allocationsAnew are those of a page that is asked for the first time each time.
func (f *bigFacade) allocationsAnew(target string) float64 {
	answer := &discarded{header: http.Header{}}
	requests := f.anew(target, allocationRuns+1) // one more to warm up
	next := 0
	return testing.AllocsPerRun(allocationRuns, func() {
		clear(answer.header)
		f.ServeHTTP(answer, requests[next])
		next++
	})
}

var asked atomic.Int64

// anew are requests for one page that nobody takes for another's: each has a parameter of its own,
// of which a list knows nothing.
func (f *bigFacade) anew(target string, n int) (all []*http.Request) {
	for range n {
		all = append(all, f.request(http.MethodGet, fmt.Sprintf("%s&nonce=%d", target, asked.Add(1)), ""))
	}
	return all
}
