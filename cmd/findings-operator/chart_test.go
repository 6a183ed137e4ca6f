package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// valuesSchema is the part of the chart's schema that the test reads.
type valuesSchema struct {
	Properties struct {
		Controller struct {
			Properties struct {
				Concurrency struct {
					Properties map[string]any `json:"properties"`
				} `json:"concurrency"`
			} `json:"properties"`
		} `json:"controller"`
	} `json:"properties"`
}

// A value that the chart's schema accepts and the binary refuses makes the pod fail at start. A value that the binary
// accepts and the schema refuses cannot be set.
func TestTheChartsSchemaTakesWhatTheBinaryTakes(t *testing.T) {
	content := readChart(t, "values.schema.json")
	schema := harness.Decoded[valuesSchema](t, content)
	var want []string
	for _, c := range (&controllerOptions{}).controllerSetups() {
		want = append(want, c.name)
	}
	slices.Sort(want)
	values := schema.Properties.Controller.Properties
	harness.Same(t, "controllers that controller.concurrency names", want, slices.Sorted(maps.Keys(values.Concurrency.Properties)))
	checked := compileSchema(t, content)
	levels, noLevels := []any{"debug", "info", "warn", "error"}, []any{"", "panic", "2", "INFO"}
	for _, test := range []struct {
		binary         func(arguments ...string) error
		flag           string
		path           []string
		taken, refused []any
	}{
		{validateController, "--log-level", []string{"controller", "logLevel"}, levels, noLevels},
		{validateAPIServer, "--log-level", []string{"api", "logLevel"}, levels, noLevels},
		{validateAPIServer, "--key-staleness", []string{"api", "keyStaleness"},
			[]any{"5s", "5.5s", "10s", "90s", "1m", "1h30m", "10s500ms"}, []any{"", "0s", "1s", "4.5s", "500ms", "0m", "1d", "5"}},
		{validateAPIServer, "--data-staleness", []string{"api", "dataStaleness"},
			[]any{"3m", "180s", "200s", "3m0.5s", "10m", "1h", "1h1m"}, []any{"", "2m", "2m59s", "179s", "30s", "0h", "1d", "10"}},
		{validateAPIServer, "--trace-sample-ratio", []string{"api", "tracing", "sampleRatio"},
			[]any{0.0, 0.5, 1.0, "0.5", "1.0"}, []any{-0.1, 1.1, "-0.1", "1.1", "2", ""}},
		{validateController, "--webhook-max-pending", []string{"controller", "webhookMaxPending"},
			[]any{int64(1)}, []any{int64(0)}},
		{validateController, "--retention-rate", []string{"controller", "retentionRate"},
			[]any{minRetentionRate, 2.5, "0.1", "2.5", "10.0"}, []any{0.0, minRetentionRate / 2, "0.0", "0.09", ""}},
	} {
		for _, sample := range slices.Concat(test.taken, test.refused) {
			var values map[string]any
			harness.Must(t, yaml.Unmarshal(readChart(t, "values.yaml"), &values))
			harness.Must(t, unstructured.SetNestedField(values, sample, test.path...))
			taken := slices.Contains(test.taken, sample)
			if err := test.binary(fmt.Sprintf("%s=%v", test.flag, sample)); (err == nil) != taken {
				t.Errorf("%s=%v: the binary reports %v; it should take it: %t", test.flag, sample, err, taken)
			}
			if err := checked.Validate(values); (err == nil) != taken {
				t.Errorf("%s %v: the schema reports %v; it should take it: %t", strings.Join(test.path, "."), sample, err, taken)
			}
		}
	}
}

func readChart(t *testing.T, file string) []byte {
	t.Helper()
	return []byte(harness.RepositoryFile(t, "charts", "findings-operator", file))
}

func compileSchema(t *testing.T, content []byte) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	harness.Must(t, err)
	compiler := jsonschema.NewCompiler()
	harness.Must(t, compiler.AddResource("values.schema.json", document))
	schema, err := compiler.Compile("values.schema.json")
	harness.Must(t, err)
	return schema
}

func validateController(arguments ...string) error {
	o := &controllerOptions{}
	return parseAndValidate(o.addFlags, o.validate, arguments)
}

func validateAPIServer(arguments ...string) error {
	o := &apiserverOptions{}
	return parseAndValidate(o.addFlags, o.validate, arguments)
}

// wantsKnownFlags refuses an error that names a flag only because it does not exist.
func wantsKnownFlags(t *testing.T, err error) {
	t.Helper()
	if _, unknown := errors.AsType[*pflag.NotExistError](err); unknown {
		t.Error(err)
	}
}

func parseAndValidate(addFlags func(*pflag.FlagSet), validate func() error, arguments []string) error {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	addFlags(flags)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	return validate()
}
