package triagepolicy

import (
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/corpus"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestThePageNamesEachMember(t *testing.T) {
	_, table, _ := strings.Cut(harness.RepositoryFile(t, "docs", "kinds", "triagepolicy.md"), "| Variable | Members |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]string{}
	root := ""
	for row := range strings.Lines(table) {
		variable, members, _ := strings.Cut(strings.Trim(row, "| \n"), " | ")
		if name := strings.Trim(variable, "`"); roots[name] != nil {
			root = name
		} else {
			members = row
		}
		rows[root] += members
	}
	for name, k := range roots {
		wantDocumented(t, name, rows[name], "", k)
	}
}

// wantDocumented fails the test unless the rows of that variable name each member of the kind.
func wantDocumented(t *testing.T, variable, rows, prefix string, k *kind) {
	t.Helper()
	for name, m := range k.members {
		if within := kinds[m.typ.TypeName()]; within != nil {
			wantDocumented(t, variable, rows, prefix+name+".", within)
		} else if !strings.Contains(rows, "`"+prefix+name+"`") {
			t.Errorf("docs/kinds/triagepolicy.md: add %s%s to the table, at the variable %s", prefix, name, variable)
		}
	}
}

// enumerated holds the members with few values, none of which is longer than the size.
var enumerated = map[string]bool{"category": true, "severity": true, "confidence": true}

// An expression is refused, or let through, by what it costs for texts of these sizes.
func TestTheSizesOfMembersAreTheBoundsOfTheSchema(t *testing.T) {
	full := &Facts{Finding: &v1alpha1.Finding{}, Project: &v1alpha1.Project{}, Repository: &v1alpha1.Repository{}}
	fill(t, "Finding", &full.Finding.Spec)
	fill(t, "Project", &full.Project.Spec)
	fill(t, "Repository", &full.Repository.Spec)
	full.Finding.Name = string(full.Finding.Spec.ProjectRef.Name)
	for typ, k := range kinds {
		for name, m := range k.members {
			var size, each uint64
			switch value := m.get(full).(type) {
			case types.String:
				size = sizeOfValue(value)
			case traits.Lister:
				size, each = sizeOfValue(value), sizeOfValue(value.Get(types.IntZero).(traits.Sizer))
			}
			if each != m.each || size > m.size || size < m.size && !enumerated[name] {
				t.Errorf("internal/triagepolicy/facts.go: %s.%s has the size %d (each %d), and the schema allows %d (each %d)",
					typ, name, m.size, m.each, size, each)
			}
		}
	}
}

// fill fills a spec to the bounds of its schema.
func fill(t *testing.T, kind string, spec any) {
	t.Helper()
	crd, err := corpus.CRD(kind)
	harness.Must(t, err)
	schema := corpus.SchemaOf(crd).Properties["spec"]
	value := (&corpus.Generator{Full: true}).Value(&schema, "spec", 0).(map[string]any)
	harness.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(value, spec))
}

func TestTheLengthsOfAPolicyAreTheBoundsOfTheSchema(t *testing.T) {
	crd, err := corpus.CRD("TriagePolicy")
	harness.Must(t, err)
	schema := corpus.SchemaOf(crd)
	spec, status := schema.Properties["spec"], schema.Properties["status"]
	harness.Same(t, "maxExpression", *spec.Properties["match"].MaxLength, int64(maxExpression))
	harness.Same(t, "maxMessage", *status.Properties["failure"].Properties["message"].MaxLength, int64(maxMessage))
}
