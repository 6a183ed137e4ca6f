package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/appsec-dev/findings-operator/test/testenv"
)

// valuesSchema is the part of the chart's schema that the test reads.
type valuesSchema struct {
	Properties struct {
		Controller struct {
			Properties struct {
				Concurrency struct {
					Properties map[string]any `json:"properties"`
				} `json:"concurrency"`
				RetentionRate struct {
					Minimum float64 `json:"minimum"`
				} `json:"retentionRate"`
			} `json:"properties"`
		} `json:"controller"`
	} `json:"properties"`
}

// A value that the chart's schema accepts and the binary refuses makes the pod fail at start. A value that the binary
// accepts and the schema refuses cannot be set.
func TestTheChartsSchemaTakesWhatTheBinaryTakes(t *testing.T) {
	path := filepath.Join(testenv.RepositoryRoot(), "charts", "findings-operator", "values.schema.json")
	content, err := os.ReadFile(path) //nolint:gosec // a test names its own files
	if err != nil {
		t.Fatal(err)
	}
	var schema valuesSchema
	if err := json.Unmarshal(content, &schema); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, c := range (&controllerOptions{}).controllerSetups() {
		want = append(want, c.name)
	}
	slices.Sort(want)
	values := schema.Properties.Controller.Properties
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(values.Concurrency.Properties))); diff != "" {
		t.Errorf("controller.concurrency names other controllers than the binary has (-binary +chart):\n%s", diff)
	}
	if values.RetentionRate.Minimum != leastRetentionRate {
		t.Errorf("controller.retentionRate is at least %v, and --retention-rate %v", values.RetentionRate.Minimum, leastRetentionRate)
	}
}
