package measure

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// taking returns a side that does n operations per second, with one figure per round after the
// warm-up.
func taking(name string, order *[]string, n ...int) Side {
	round := -1
	return Side{Name: name, Run: func(context.Context, time.Duration) (Sample, error) {
		*order = append(*order, name)
		round++
		if round == 0 {
			return Sample{Operations: 1, Elapsed: time.Hour}, nil
		}
		return Sample{Operations: n[round-1], Elapsed: time.Second}, nil
	}}
}

// In the second round the machine is ten times slower for both. The ratio of medians would be 20.
func TestARatioIsTheMedianOfTheRounds(t *testing.T) {
	var order []string
	results, err := Rounds(t.Context(), Plan{Rounds: 3}, taking("fast", &order, 400, 20, 200), taking("slow", &order, 100, 10, 20))
	harness.Must(t, err)
	harness.Same(t, "the ratio", Ratio{Median: 4, Least: 2, Most: 10}, results.Ratio("fast", "slow"))
	harness.Same(t, "the slow one's rate", 20.0, results.Rate("slow"))
}

// A side that leaves work behind would slow down a side that always follows it.
func TestNoSideAlwaysFollowsTheSameOther(t *testing.T) {
	const rounds = 7
	var order []string
	var sides []Side
	for _, name := range []string{"a", "b", "c"} {
		sides = append(sides, taking(name, &order, 1, 1, 1, 1, 1, 1, 1))
	}
	_, err := Rounds(t.Context(), Plan{Rounds: rounds}, sides...)
	harness.Must(t, err)
	follows := map[string]map[string]bool{"a": {}, "b": {}, "c": {}}
	for i := 1; i < len(order); i++ {
		follows[order[i]][order[i-1]] = true
	}
	for name, before := range follows {
		delete(before, name)
		if len(before) < len(sides)-1 {
			t.Errorf("%s comes after %v alone: %v", name, before, order)
		}
		harness.Same(t, "turns of "+name+", with the round before", rounds+1, strings.Count(strings.Join(order, ""), name))
	}
}

func TestATurnBeginsWhenItMay(t *testing.T) {
	var order []string
	plan := Plan{Rounds: 2, Before: func(context.Context) error {
		order = append(order, "may")
		return nil
	}}
	_, err := Rounds(t.Context(), plan, taking("a", &order, 1, 1), taking("b", &order, 1, 1))
	harness.Must(t, err)
	for i, event := range order {
		if (event == "may") != (i%2 == 0) {
			t.Errorf("not each turn waited: %v", order)
		}
	}
	plan.Before = func(context.Context) error { return errors.New("never calm") }
	if _, err := Rounds(t.Context(), plan, taking("a", &order, 1, 1)); err == nil || err.Error() != "a: never calm" {
		t.Errorf("got %v", err)
	}
}

// tick is the unit of processor time in /proc.
const tick = 10 * time.Millisecond

// The test's own process works until it has used some processor time; only then does it count as
// idle.
func TestABusyProcessIsWaitedFor(t *testing.T) {
	asked, used := 0, time.Duration(0)
	busyTwice := func(pids []int) map[int]time.Duration {
		if asked++; asked == 2 || asked == 3 {
			used += idleFor
		}
		return map[int]time.Duration{pids[0]: used, pids[1]: 0}
	}
	harness.Must(t, awaitIdle(t.Context(), []int{1, 2}, busyTwice))
	harness.Same(t, "times it was asked: before, twice while busy, and once when idle", 4, asked)
}

func TestASideThatFailsEndsTheComparison(t *testing.T) {
	broken := Side{Name: "broken", Run: func(context.Context, time.Duration) (Sample, error) { return Sample{}, errors.New("oh") }}
	if _, err := Rounds(t.Context(), Plan{Rounds: 1}, broken); err == nil || err.Error() != "broken: oh" {
		t.Errorf("got %v", err)
	}
}

func TestProcessorTimeAndMemoryOfAProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("this system has no /proc")
	}
	side := Side{Name: "busy", PIDs: []int{os.Getpid(), 1 << 30}, Run: func(context.Context, time.Duration) (Sample, error) {
		before, err := ProcessorTimeOf(os.Getpid())
		if err != nil {
			return Sample{}, err
		}
		for now := before; now < before+5*tick; {
			if now, err = ProcessorTimeOf(os.Getpid()); err != nil {
				return Sample{}, err
			}
		}
		return Sample{Operations: 5, Elapsed: time.Second}, nil
	}}
	results, err := Rounds(t.Context(), Plan{Rounds: 1}, side)
	harness.Must(t, err)
	if got := results.CPU("busy"); got < tick {
		t.Errorf("an operation took %s; at least %s was worked", got, tick)
	}
	memory, err := MemoryOf(os.Getpid())
	if err != nil || memory.Resident < 1<<20 || memory.Peak < memory.Resident {
		t.Errorf("%+v, %v", memory, err)
	}
}
