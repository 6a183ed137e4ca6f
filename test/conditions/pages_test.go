package conditions_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// page returns the kind's page in docs/kinds.
func page(t *testing.T, kind string) string {
	t.Helper()
	return harness.RepositoryFile(t, "docs", "kinds", strings.ToLower(kind)+".md")
}

var (
	// conditionRow matches a row of a page's table of conditions: type, status, reasons, meaning.
	conditionRow = regexp.MustCompile(`(?m)^\| ([A-Z][A-Za-z]+) \| (True|False|never) \| ([^|]*) \| ([^|]+) \|$`)
	word         = regexp.MustCompile("`([A-Za-z]+)`")
	yamlBlock    = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	// tableShown matches a kubectl get that the page shows, with the table's header.
	tableShown = regexp.MustCompile("(?ms)^\\$ kubectl (get [^\n]+)\n(NAME [^\n]*)\n")
	// conditionsShown matches the conditions in the output of kubectl describe.
	conditionsShown = regexp.MustCompile("(?ms)^  Conditions:\n.*?^    Type: +Ready$")
)

func TestEveryKindsPageDescribesItsConditions(t *testing.T) {
	for _, kind := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			_, section, found := strings.Cut(page(t, kind), "\n## Conditions\n")
			if !found {
				t.Fatal("the page has no section Conditions")
			}
			var types, told []string
			for _, row := range conditionRow.FindAllStringSubmatch(section, -1) {
				types = append(types, row[1])
				for _, reason := range word.FindAllStringSubmatch(row[3], -1) {
					told = append(told, reason[1])
				}
			}
			slices.Sort(types)
			want := slices.Sorted(slices.Values(conditionTypes(t, kind)))
			harness.Same(t, "the page's conditions differ from the kind's", want, slices.Compact(types))
			slices.Sort(told)
			harness.Same(t, "the page's reasons differ from those that the controller uses",
				reasons(t, kind), slices.Compact(told))
			if !conditionsShown.MatchString(section) {
				t.Error("the page does not show what kubectl describe prints")
			}
		})
	}
}

// example returns the object with which the kind's page begins.
func example(t *testing.T, kind string) *unstructured.Unstructured {
	t.Helper()
	block := yamlBlock.FindStringSubmatch(page(t, kind))
	if block == nil {
		t.Fatalf("the page of %s has no example", kind)
	}
	object := &unstructured.Unstructured{}
	harness.Must(t, yaml.UnmarshalStrict([]byte(block[1]), &object.Object))
	if object.GetKind() != kind {
		t.Fatalf("the page of %s begins with a %s", kind, object.GetKind())
	}
	return object
}

// checkTables runs each kubectl get of the page, and compares the columns.
func checkTables(t *testing.T, kind string) {
	t.Helper()
	shown := tableShown.FindAllStringSubmatch(page(t, kind), -1)
	if len(shown) == 0 {
		t.Errorf("the page of %s shows no table of kubectl get", kind)
	}
	for _, table := range shown {
		header, _, _ := strings.Cut(env.Kubectl(t, "default", strings.Fields(table[1])...), "\n")
		harness.Same(t, "columns of kubectl "+table[1]+", compared with the page of "+kind, columns(table[2]), columns(header))
	}
}

// columns splits a table's header into its columns; a single space does not separate columns.
func columns(header string) []string {
	return regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(header), -1)
}
