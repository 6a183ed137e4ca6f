package findings

import (
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/client"
)

// groupings are the filters by whose values the list can be grouped. A finding has one value of each at most, so that
// it is in one group.
var groupings = []filter{
	filterNamed("severity"), filterNamed("rule"), filterNamed("package"), filterNamed("file"),
	filterNamed("repo_id"), filterNamed("project_id"), filterNamed("owner"),
}

// group is what the view shows of findings that have a value in common.
type group struct {
	Word  string
	Count int
	// Only is the address of a list of these alone, Rows that of the first rows of it.
	Only, Rows string
}

// grouped is the list by groups.
type grouped struct {
	Groups []group
	// Hidden is how many groups are not shown, Without how many findings are in none where all groups are shown.
	Hidden, Without int
}

// groupedBy is the filter by which the view is grouped. One that the view asks for a value of leaves nothing to group.
func (v view) groupedBy() (by filter, ok bool) {
	i := slices.IndexFunc(groupings, func(f filter) bool { return f.Name == v.values.Get("group") })
	if i < 0 || v.values.Get(groupings[i].Name) != "" {
		return filter{}, false
	}
	return groupings[i], true
}

// groupName is what the view is grouped by.
func (v view) groupName() string {
	if by, ok := v.groupedBy(); ok {
		return by.name()
	}
	return notGrouped
}

const notGrouped = "none"

// name is what a grouping by the filter is called.
func (f filter) name() string { return "by " + strings.ToLower(f.Label) }

// groupsOf are the groups of what was counted by a field, the greatest first.
func groupsOf(counted client.FieldCounts, total int32, of view, by filter) (out grouped) {
	in := 0
	for _, value := range inOrder(by, counted.Values) {
		in += int(value.Count)
		out.Groups = append(out.Groups, group{
			Word: by.word(value.Value), Count: int(value.Count),
			Only: of.with("group", "", by.Name, value.Value),
			Rows: of.with("group", "", by.Name, value.Value, "part", "rows"),
		})
	}
	if out.Hidden = int(counted.Distinct) - len(counted.Values); out.Hidden == 0 {
		out.Without = int(total) - in
	}
	return out
}
