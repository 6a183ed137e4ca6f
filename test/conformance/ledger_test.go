package conformance

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// ledger holds the outcome of every test, for the summary at the end.
var ledger = &results{outcome: map[string]string{}}

type results struct {
	mutex sync.Mutex
	// outcome is by test name: passed, failed, or why the test did not run.
	outcome map[string]string
}

const (
	passed = "passed"
	failed = "failed"
)

// enter adds a test to the ledger. Every function that creates a client for a test calls it.
func enter(t *testing.T) {
	t.Helper()
	if strings.Contains(t.Name(), "/") {
		return
	}
	ledger.note(t.Name(), passed, true)
	t.Cleanup(func() {
		if t.Failed() {
			ledger.note(t.Name(), failed, false)
		}
	})
}

// notRun ends a test that lacks its input.
func notRun(t *testing.T, reason string) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	ledger.note(name, reason, false)
	if *requireAll {
		t.Fatal("cannot run: " + reason)
	}
	t.Skip(reason)
}

// note sets a test's outcome; with onlyNew it keeps an existing outcome.
func (r *results) note(name, outcome string, onlyNew bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if _, known := r.outcome[name]; !known || !onlyNew {
		r.outcome[name] = outcome
	}
}

func (r *results) print(to io.Writer, target string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	counts := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(r.outcome)) {
		switch outcome := r.outcome[name]; outcome {
		case passed, failed:
			counts[outcome]++
		default:
			counts["not run"]++
			fmt.Fprintf(to, "not run: %s: %s\n", name, outcome) //nolint:errcheck // a summary for people
		}
	}
	fmt.Fprintf(to, "conformance of %s: %d tests, %d passed, %d failed, %d not run\n", //nolint:errcheck // as above
		target, len(r.outcome), counts[passed], counts[failed], counts["not run"])
}
