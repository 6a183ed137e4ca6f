package chart

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/harness"
)

var everythingOn = filepath.Join("testdata", "values", "everything.yaml")

// An alert on a metric that does not exist never fires, which nobody would notice.
func TestAlertsAndDashboardUseExistingMetrics(t *testing.T) {
	objects := Render(t, "findings", "findings-system", "--values", everythingOn)
	dashboard, _, _ := unstructured.NestedString(one(t, objects, "ConfigMap", "everything-dashboard").Object, "data", "findings-system.everything.json") //nolint:errcheck // checked by what follows
	if !json.Valid([]byte(dashboard)) {
		t.Fatal("the dashboard is no JSON")
	}
	rules := harness.JSON(t, one(t, objects, "PrometheusRule", "everything").Object)
	source := goSource(t)
	// Metrics of controller-runtime and of the Prometheus client, which every process has.
	libraries := map[string]bool{
		"controller_runtime_reconcile_errors_total": true, "controller_runtime_reconcile_total": true,
		"leader_election_master_status": true, "workqueue_depth": true, "process_resident_memory_bytes": true,
		"process_start_time_seconds": true,
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
	page := harness.RepositoryFile(t, "docs", "operations.md")
	for _, made := range regexp.MustCompile(`(Name: +|New[A-Z]\w+\()"(findings_\w+)"`).FindAllStringSubmatch(source, -1) {
		if name := made[2]; !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/operations.md: add %s to the tables of metrics", name)
		}
	}
}

// Grafana keeps one dashboard of each file, uid and title: with those of another release it would be removed with that
// release. A panel that adds several releases up hides which of them fails.
func TestTheDashboardsOfReleasesAreKeptApart(t *testing.T) {
	files, uids, titles := map[string]bool{}, map[string]bool{}, map[string]bool{}
	releases := [][2]string{{"a", "security"}, {"b", "security"}, {"a", "security-b"}}
	for _, release := range releases {
		name, namespace := release[0], release[1]
		objects := Render(t, name, namespace,
			"--set", "metrics.dashboard.enabled=true", "--show-only", "templates/dashboard.yaml")
		data, _, _ := unstructured.NestedStringMap(objects[0].Object, "data") //nolint:errcheck // none is counted below
		for file, content := range data {
			dashboard := harness.Decoded[struct{ UID, Title string }](t, []byte(content))
			if len(dashboard.UID) > 40 {
				t.Errorf("Grafana refuses the uid %q: it has more than 40 characters", dashboard.UID)
			}
			files[file], uids[dashboard.UID], titles[dashboard.Title] = true, true, true
			queries := strings.Count(content, `"expr"`)
			own := fmt.Sprintf(`{namespace=\"%s\", job=\"%s-`, namespace, name)
			if counted := strings.Count(content, own); queries == 0 || counted != queries {
				t.Errorf("release %s in %s: %d of %d queries ask for it alone", name, namespace, counted, queries)
			}
		}
	}
	for what, distinct := range map[string]map[string]bool{"files": files, "uids": uids, "titles": titles} {
		harness.Same(t, "distinct "+what, len(releases), len(distinct))
	}
}

// Such requests wait for their clients, an import or the controllers: in the quantile of all, they would look like a
// slow service.
func TestTheSlowAPIIsMeasuredWithoutRequestsThatWait(t *testing.T) {
	expression := expressions(t)["FindingsAPISlow"]
	excluded := regexp.MustCompile(`route!~"([^"]+)"`).FindStringSubmatch(expression)
	waiting := regexp.MustCompile(`unless .*method=~"([^"]+)", route=~"([^"]+)"`).FindStringSubmatch(expression)
	if excluded == nil || waiting == nil {
		t.Fatalf("uploads, exports or what waits for the controllers are not left out: %s", expression)
	}
	matches := func(pattern, text string) bool { return regexp.MustCompile("^(?:" + pattern + ")$").MatchString(text) }
	awaiting := []string{
		"exportFindings", // for its client
		"createTriageOperation", "commitTriageOperation", "createTriagePolicy", "updateTriagePolicy", "redeliverWebhookDelivery",
	}
	spec, err := openapi.Load()
	harness.Must(t, err)
	operations, err := openapi.Operations(spec)
	harness.Must(t, err)
	for id, operation := range operations {
		left := matches(excluded[1], operation.Path) ||
			matches(waiting[1], operation.Method) && matches(waiting[2], operation.Path)
		harness.Same(t, fmt.Sprintf("%s %s (%s) is left out, as it waits", operation.Method, operation.Path, id),
			operation.IsStream() || slices.Contains(awaiting, id), left)
	}
	for path, want := range map[string]bool{
		"/console/operations/{id}/commit": true, "/console/policies/_new": true, "/console/deliveries/{id}/redeliver": true,
		"/console/findings/{id}": false,
	} {
		harness.Same(t, "a form is left out: "+path, want, matches(waiting[2], path))
	}
	harness.Same(t, "the console's export is left out", true, matches(excluded[1], "/console/export"))
}

// expressions returns the queries by the names of their alerts and the titles of their panels.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, alert := range alerts(t) {
		out[name] = alert["expr"].(string)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	content := harness.RepositoryFile(t, "charts", "findings-operator", "files", "dashboard.json")
	harness.Must(t, json.Unmarshal([]byte(content), &dashboard))
	for _, panel := range dashboard.Panels {
		for i, target := range panel.Targets {
			out[fmt.Sprintf("%s %d", panel.Title, i)] = target.Expr
		}
	}
	return out
}

// alerts returns all alerts by name.
func alerts(t *testing.T) map[string]map[string]any {
	t.Helper()
	rule := one(t, Render(t, "findings", "findings-system", "--values", everythingOn), "PrometheusRule", "everything")
	groups, _, _ := unstructured.NestedSlice(rule.Object, "spec", "groups") //nolint:errcheck // the callers miss what is not found
	out := map[string]map[string]any{}
	for _, group := range groups {
		for _, alert := range group.(map[string]any)["rules"].([]any) {
			alert := alert.(map[string]any)
			out[alert["alert"].(string)] = alert
		}
	}
	return out
}

// goSource returns the code of both processes.
func goSource(t *testing.T) string {
	t.Helper()
	var source strings.Builder
	for _, room := range []string{"apiserver", "controllers", "internal"} {
		err := filepath.WalkDir(filepath.Join(harness.Root(), room), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			source.Write(content)
			return err
		})
		harness.Must(t, err)
	}
	return source.String()
}

// A broken runbook link would otherwise be found only during an incident.
func TestEveryAlertHasItsRunbook(t *testing.T) {
	page := harness.RepositoryFile(t, "docs", "operations.md")
	alerts := alerts(t)
	for name, alert := range alerts {
		link, _ := alert["annotations"].(map[string]any)["runbook_url"].(string) //nolint:errcheck // none fails below
		if !strings.HasSuffix(link, "/docs/operations.md#"+strings.ToLower(name)) {
			t.Errorf("%s links to %q", name, link)
		}
		if !strings.Contains(page, "\n### "+name+"\n") {
			t.Errorf("docs/operations.md has no section %s", name)
		}
	}
	if seen := len(alerts); seen < 5 || strings.Count(page, "\n### Findings") != seen {
		t.Errorf("there are %d alerts, and %d sections in docs/operations.md", seen, strings.Count(page, "\n### Findings"))
	}
}
