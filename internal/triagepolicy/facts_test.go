package triagepolicy

import (
	"strings"
	"testing"

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
