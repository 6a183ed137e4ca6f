package importer

import (
	"testing"
	"time"

	"github.com/appsec-dev/findings-operator/scanimport/sarif"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestErrorsOfTheToolReachTheScanWithoutControlCharacters(t *testing.T) {
	run := sarif.Run{Tool: "lint", Incomplete: "halted\x1b[2J", Warnings: []string{"a file\x1b[2J"}}
	batches, err := Collect([]File{{Name: "a.sarif", Log: &sarif.Log{Runs: []sarif.Run{run}}}}, Choices{}, time.Now())
	harness.Must(t, err)
	harness.Same(t, "incomplete", []string{"a.sarif, run 0: halted\uFFFD[2J"}, batches[0].Incomplete)
	harness.Same(t, "warnings", []string{"a.sarif, run 0: a file\uFFFD[2J"}, batches[0].Warnings)
}
