// Package alerts evaluates the alerts of the chart with Prometheus' own engine.
package alerts

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// An alert that never fires, or that fires without cause, would only be noticed during an incident.
func TestAlertsFireWhenTheyShouldAndOnlyThen(t *testing.T) {
	untested := map[string]bool{}
	for name := range rows {
		untested[name] = true
	}
	for _, alert := range rulesOf(t, render(t, "everything")) {
		delete(untested, alert.Alert)
		t.Run(alert.Alert, func(t *testing.T) {
			fired, silent := 0, 0
			for _, row := range rows[alert.Alert] {
				if row.want == never {
					silent++
				} else {
					fired++
				}
				if got := firing(t, alert, row.series); got != row.want {
					t.Errorf("%s:\n got %q\nwant %q", row.reason, got, row.want)
				}
			}
			if fired == 0 || silent == 0 {
				t.Errorf("it fires in %d rows and is silent in %d: at least one of each is needed", fired, silent)
			}
		})
	}
	for name := range untested {
		t.Errorf("the chart has no alert %s", name)
	}
}

// Most expressions sum up or take the highest value, which leaves no label of the release. Alertmanager would take the
// alerts of two releases for one, and an AlertmanagerConfig only sees those with its own namespace.
func TestAlertsNameTheReleaseThatTheyRead(t *testing.T) {
	for _, alert := range rulesOf(t, render(t, "everything")) {
		if alert.Labels["namespace"] != "findings-system" || alert.Labels["release"] != "everything" {
			t.Errorf("%s has the labels %v", alert.Alert, alert.Labels)
		}
		expression, err := promQL.ParseExpr(alert.Expr)
		must(t, err)
		parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
			if metric, ok := node.(*parser.VectorSelector); ok && !isOfRelease(metric.LabelMatchers) {
				t.Errorf("%s reads other releases: %s", alert.Alert, metric)
			}
			return nil
		})
	}
}

// isOfRelease reports whether a selector demands one of the release's jobs.
func isOfRelease(matchers []*labels.Matcher) bool {
	demanded := map[string]string{}
	for _, matcher := range matchers {
		if matcher.Type == labels.MatchEqual {
			demanded[matcher.Name] = matcher.Value
		}
	}
	return demanded["namespace"] == "findings-system" &&
		(demanded["job"] == "everything-api-metrics" || demanded["job"] == "everything-controller-metrics")
}

// Prometheus refuses a group with a mistake, and its Prometheus operator then leaves out the whole object.
func TestRulesAreValidWithEachSetOfValues(t *testing.T) {
	for values, want := range map[string]int{"everything": len(rows), "workloads": len(rows) - 1, "plane": 0} {
		if got := len(rulesOf(t, render(t, values))); got != want {
			t.Errorf("with the values %s there are %d rules, want %d", values, got, want)
		}
	}
}

// Grafana shows no error for a panel that nobody looks at.
func TestTheQueriesOfTheDashboardAreValid(t *testing.T) {
	queries := 0
	for _, object := range render(t, "everything") {
		for file, content := range object.Data {
			if object.Kind != "ConfigMap" || !strings.HasSuffix(file, ".json") {
				continue
			}
			var dashboard struct {
				Panels []struct {
					Title   string
					Targets []struct{ Expr string }
				}
			}
			must(t, json.Unmarshal([]byte(content), &dashboard))
			for _, panel := range dashboard.Panels {
				for _, target := range panel.Targets {
					queries++
					if _, err := promQL.ParseExpr(strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")); err != nil {
						t.Errorf("%s: %v", panel.Title, err)
					}
				}
			}
		}
	}
	if queries < 10 {
		t.Errorf("the dashboard has only %d queries", queries)
	}
}

// object is what these tests read of an object of the chart.
type object struct {
	Kind string
	Spec yaml.Node
	Data map[string]string
}

// render returns the objects of the chart with one of the sets of values of test/chart, alerts included.
func render(t *testing.T, values string) (objects []object) {
	t.Helper()
	helm := exec.CommandContext(t.Context(), "../../bin/helm", "template", "findings", "../../charts/findings-operator",
		"--namespace", "findings-system", "--values", "../chart/testdata/values/"+values+".yaml",
		"--set", "metrics.prometheusRule.enabled=true")
	helm.Env = append(helm.Environ(), "HELM_CACHE_HOME="+t.TempDir())
	var stderr bytes.Buffer
	helm.Stderr = &stderr
	out, err := helm.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s\nIf bin/helm does not exist, run `make helm`.", helm, err, stderr.String())
	}
	for decoder := yaml.NewDecoder(bytes.NewReader(out)); ; {
		var next object
		if err := decoder.Decode(&next); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, next)
	}
}

// rulesOf returns all rules, which Prometheus accepts.
func rulesOf(t *testing.T, objects []object) (rules []rulefmt.Rule) {
	t.Helper()
	for _, object := range objects {
		if object.Kind != "PrometheusRule" {
			continue
		}
		content, err := yaml.Marshal(&object.Spec)
		must(t, err)
		groups, errs := rulefmt.Parse(content, false, model.UTF8Validation, promQL, promslog.NewNopLogger())
		must(t, errors.Join(errs...))
		for _, group := range groups.Groups {
			rules = append(rules, group.Rules...)
		}
	}
	return rules
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
