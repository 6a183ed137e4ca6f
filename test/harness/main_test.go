package harness

import (
	"context"
	"errors"
	"flag"
	"testing"
)

// suite stands for the tests of a package: it runs and ends with a code.
type suite func() int

func (s suite) Run() int { return s() }

func TestMainStopsWhatItStartsWhateverTheResult(t *testing.T) {
	broken := errors.New("broken")
	for reason, tc := range map[string]struct {
		start, stop error
		code, want  int
		runs        bool
	}{
		"all is well":       {runs: true},
		"a test fails":      {code: 1, want: 1, runs: true},
		"a start fails":     {start: broken, want: 1},
		"a stop fails":      {stop: broken, want: 1, runs: true},
		"a panic has its 2": {code: 2, want: 2, runs: true},
	} {
		Must(t, flag.Set("test.testlogfile", "log"))
		var ran, stopped bool
		code := run(suite(func() int { ran = true; return tc.code }), func(_ context.Context, stops *Stops) error {
			stops.Add(func() error { stopped = true; return tc.stop })
			return tc.start
		})
		if code != tc.want || ran != tc.runs || !stopped {
			t.Errorf("%s: code %d, want %d; ran %t, want %t; stopped %t", reason, code, tc.want, ran, tc.runs, stopped)
		}
		Same(t, reason+": the file by which the result is cached", "", flag.Lookup("test.testlogfile").Value.String())
	}
}
