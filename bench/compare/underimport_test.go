package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/bench/internal/report"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// One decision of a hundred that waits behind the import is enough.
func TestADecisionThatWaitsBehindAnImportMissesTheTarget(t *testing.T) {
	decisions := func(slowest time.Duration) []followed {
		out := make([]followed, 100)
		for i := range out {
			out[i] = followed{answered: 5, shown: 10, recorded: 20, delivered: 40}
		}
		out[40].delivered, out[40].overtaken = slowest, 1_234
		return out
	}
	found := &underFound{
		imported: 500, present: 1_000, quiet: decisions(40), during: decisions(121),
		imports: []importTimes{
			{where: "late", took: 10 * time.Second, recorded: 14 * time.Second},
			{where: "in time", took: 10 * time.Second, recorded: 13 * time.Second},
		},
	}
	section := found.section()
	want := map[string]report.Verdict{
		"shows": report.Reached, "records": report.Reached, "webhook has": report.NotReached,
		"late": report.NotReached, "in time": report.Reached,
	}
	for _, row := range section.Rows {
		for part, verdict := range want {
			if strings.Contains(row.Measure, part) && row.Verdict != verdict {
				t.Errorf("%s: got %s (%s), want %s", row.Measure, row.Verdict, row.Measured, verdict)
			}
		}
	}
	harness.Same(t, "figures", len(want), len(section.Rows))
	counts := section.Tables[0].Rows[len(delays)]
	harness.Same(t, "deliveries that overtook the decision", "1,234", counts[len(counts)-1])
}

func TestOnlyTheFirstExpectedArrivalCounts(t *testing.T) {
	a := newArrivals("a test", time.Minute)
	first := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	a.came("early", first)
	early, seen := a.expect("early"), a.expect("expected")
	a.came("expected", first)
	a.came("expected", first.Add(time.Second))
	if at, err := seen(t.Context()); err != nil || !at.Equal(first) {
		t.Errorf("got %v, %v, want %v", at, err, first)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if at, err := early(over); err == nil {
		t.Errorf("an arrival at %v counts, from before it was expected", at)
	}
	a.patience = time.Nanosecond
	_, err := early(t.Context())
	harness.ErrorContains(t, "an arrival that does not come", err, "a test has not brought early")
}
