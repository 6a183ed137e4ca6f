package main

import (
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/bench"
	"github.com/appsec-dev/findings-operator/bench/internal/measure"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// The machine may be twice as fast in one round as in another.
func TestWhatFollowsIsComparedWithTheDecisionsOfItsRound(t *testing.T) {
	rate := func(operations int) measure.Sample {
		return measure.Sample{Operations: operations, Elapsed: time.Second}
	}
	results := measure.Results{}
	for i, side := range webhookSides[1:] {
		for _, decisions := range []int{1_000, 10_000, 100} {
			results.Add(map[string]measure.Sample{
				decideSide: rate(decisions << i), decidedBefore(side): rate(decisions << i), side: rate(decisions << i / 2),
			})
		}
	}
	table := (&hooks{Fixture: &bench.Fixture{}}).section(results).Tables[0]
	for i, want := range []string{"1", "0.50", "0.50", "0.50"} {
		harness.Same(t, "the ratio of "+webhookSides[i], want, table.Rows[i][2])
	}
}
