package main

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Each decision must cause a write; otherwise the benchmark would measure requests that change
// nothing.
func TestNoDecisionRepeatsTheOneBefore(t *testing.T) {
	findings := []string{"f-a", "f-b", "f-c"}
	last := map[string]decision{}
	for _, series := range []string{"one", "two"} {
		for number := range 4 * len(findings) {
			d := newDecision(findings, series, number)
			if d.comments == last[d.finding].comments {
				t.Errorf("series %s, number %d decides for %s what was decided: %+v", series, number, d.finding, d)
			}
			last[d.finding] = d
		}
	}
}

// Two callers with a common number would write to the same finding concurrently.
func TestCallersHaveNumbersOfTheirOwn(t *testing.T) {
	const callers = 4
	var lock sync.Mutex
	seen := map[int]bool{}
	sample, err := callFor(t.Context(), callers, 10*time.Millisecond, func(_ context.Context, number int) error {
		lock.Lock()
		defer lock.Unlock()
		if seen[number] {
			t.Errorf("number %d is called twice", number)
		}
		seen[number] = true
		return nil
	})
	harness.Must(t, err)
	harness.Same(t, "what is counted, the calls after each caller's first", len(seen)-callers, sample.Operations)
}

func TestAHistogramSaysBelowWhichBoundAPartIs(t *testing.T) {
	before := histogram{{0.001, 10}, {0.01, 10}, {math.Inf(1), 10}}
	h := histogram{{0.001, 60}, {0.01, 109}, {math.Inf(1), 110}}.less(before)
	for quantile, want := range map[float64]string{0.5: "below 1.0 ms", 0.99: "below 10.0 ms", 1: "more than 0.01 s"} {
		harness.Same(t, fmt.Sprintf("what %v of all are", quantile), want, h.at(quantile))
	}
	harness.Same(t, "half of nothing", "-", before.less(before).at(0.5))
}
