package bench_test

import (
	"runtime"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// measured are the controllers whose cost might grow with the number of findings.
var measured = []string{"finding", "organization", "project", "repository", "retention"}

func (c *cluster) reconcile(t *testing.T, name string) {
	t.Helper()
	_, err := c.reconcilers[name].Reconcile(t.Context(), c.request(name))
	harness.Must(t, err)
}

// The allocations of one reconcile do not grow with the findings: ten times as many findings allow
// a tenth more, plus a little for background work. Time would show the same, but less reliably on a
// busy machine.
func TestTheCostOfAReconcileDoesNotGrowWithTheFindings(t *testing.T) {
	few, many := allocations(t, 1_000), allocations(t, 10_000)
	for _, name := range measured {
		a, b := few[name], many[name]
		t.Logf("%s: %d bytes with 1,000 findings, %d with 10,000", name, a, b)
		if b > a+a/10+4096 {
			t.Errorf("a look of %s allocates %d bytes with 1,000 findings and %d with 10,000", name, a, b)
		}
	}
}

// allocations returns the bytes that one reconcile allocates with that many findings, by
// controller.
func allocations(t *testing.T, findings int) map[string]uint64 {
	t.Helper()
	c := newCluster(t, findings)
	defer c.stop()
	bytes := map[string]uint64{}
	for _, name := range measured {
		bytes[name] = c.allocates(t, name)
	}
	return bytes
}

// allocates returns the least bytes of several rounds: other work in the process can only add to
// the count.
func (c *cluster) allocates(t *testing.T, name string) uint64 {
	t.Helper()
	const rounds, times = 8, 20
	var least uint64
	for round := range rounds {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			c.reconcile(t, name)
		}
		runtime.ReadMemStats(&after)
		if bytes := (after.TotalAlloc - before.TotalAlloc) / times; round == 0 || bytes < least {
			least = bytes
		}
	}
	return least
}
