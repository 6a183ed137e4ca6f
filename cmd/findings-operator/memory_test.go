package main

import (
	"io"
	"math"
	"runtime/debug"
	"testing"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// With the whole limit the kernel would end the process before the garbage collector works harder.
func TestATenthOfTheMemoryLimitIsLeftForWhatGoDoesNotCount(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for reason, test := range map[string]struct {
		limit, goLimit string
		want           int64
	}{
		"in a container":            {"2147483648", "2147483648", 1932735276},
		"no limit for Go":           {"2147483648", "", 1932735276},
		"a user set a lower limit":  {"2147483648", "1GiB", math.MaxInt64}, // Go has read it
		"outside of a container":    {"", "", math.MaxInt64},
		"the limit is not in bytes": {"2Gi", "2Gi", math.MaxInt64},
	} {
		t.Setenv(memoryLimitVariable, test.limit)
		t.Setenv("GOMEMLIMIT", test.goLimit)
		debug.SetMemoryLimit(math.MaxInt64)
		root := newRootCommand()
		root.SetArgs([]string{"size", "--findings=1000"})
		root.SetOut(io.Discard)
		if err := root.Execute(); (err != nil) != (test.limit == "2Gi") {
			t.Errorf("%s: error %v", reason, err)
		}
		harness.Same(t, reason, test.want, debug.SetMemoryLimit(-1))
	}
	harness.Contains(t, "the chart passes the memory limit", string(readChart(t, "templates/_helpers.tpl")),
		"name: "+memoryLimitVariable, "name: GOMEMLIMIT")
	for _, template := range []string{"controller.yaml", "api.yaml"} {
		manifest := string(readChart(t, "templates/"+template))
		harness.Contains(t, template+" passes the environment", manifest, `include "findings.env" $component`)
	}
}
