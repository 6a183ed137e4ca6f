package chart

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/appsec-dev/findings-operator/test/testenv"
)

var everythingOn = filepath.Join("testdata", "values", "everything.yaml")

// An alert on a metric that does not exist never fires, which nobody would notice.
func TestAlertsAndDashboardAskForMetricsThatThereAre(t *testing.T) {
	objects := Render(t, "findings", "findings-system", "--values", everythingOn)
	dashboard, _, _ := unstructured.NestedString(one(t, objects, "ConfigMap", "everything-dashboard").Object, "data", "findings-operator.json") //nolint:errcheck // checked by what follows
	if !json.Valid([]byte(dashboard)) {
		t.Fatal("the dashboard is no JSON")
	}
	rules, err := json.Marshal(one(t, objects, "PrometheusRule", "everything").Object)
	if err != nil {
		t.Fatal(err)
	}
	source := goSource(t)
	// Metrics of controller-runtime and of the Prometheus client, which every process has.
	libraries := map[string]bool{
		"controller_runtime_reconcile_errors_total": true, "controller_runtime_reconcile_total": true,
		"leader_election_master_status": true, "workqueue_depth": true, "process_resident_memory_bytes": true,
	}
	found := regexp.MustCompile(`\b[a-z]+(_[a-z]+)+\{`).FindAllString(string(rules)+dashboard, -1)
	if len(found) < 10 {
		t.Fatalf("only %v are asked for", found)
	}
	for _, name := range found {
		name = strings.TrimSuffix(name, "{")
		base := strings.TrimSuffix(name, "_bucket")
		if !libraries[name] && !strings.Contains(source, `"`+base+`"`) {
			t.Errorf("%s is asked for, and no code of ours makes it", name)
		}
	}
}

// goSource returns the code of both processes.
func goSource(t *testing.T) string {
	t.Helper()
	var source strings.Builder
	for _, room := range []string{"apiserver", "controllers", "internal"} {
		err := filepath.WalkDir(filepath.Join(testenv.RepositoryRoot(), room), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			source.Write(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return source.String()
}

// A broken runbook link would otherwise be found only during an incident.
func TestEveryAlertHasItsRunbook(t *testing.T) {
	rule := one(t, Render(t, "findings", "findings-system", "--values", everythingOn), "PrometheusRule", "everything")
	groups, _, _ := unstructured.NestedSlice(rule.Object, "spec", "groups") //nolint:errcheck // none fails below
	page := readFile(t, "docs", "operations.md")
	seen := 0
	for _, group := range groups {
		for _, alert := range group.(map[string]any)["rules"].([]any) {
			alert := alert.(map[string]any)
			name := alert["alert"].(string)
			link, _ := alert["annotations"].(map[string]any)["runbook_url"].(string) //nolint:errcheck // none fails below
			if !strings.HasSuffix(link, "/docs/operations.md#"+strings.ToLower(name)) {
				t.Errorf("%s links to %q", name, link)
			}
			if !strings.Contains(page, "\n### "+name+"\n") {
				t.Errorf("docs/operations.md has no section %s", name)
			}
			seen++
		}
	}
	if seen < 5 || strings.Count(page, "\n### Findings") != seen {
		t.Errorf("there are %d alerts, and %d sections in docs/operations.md", seen, strings.Count(page, "\n### Findings"))
	}
}
