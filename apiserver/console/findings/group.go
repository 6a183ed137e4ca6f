package findings

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// groupings are the filters by which the list can be grouped. A finding has at most one value of each, so it is in at
// most one group.
var groupings = []filter{
	filterNamed("severity"), filterNamed("rule"), filterNamed("package"), filterNamed("file"),
	filterNamed("repo_id"), filterNamed("project_id"), filterNamed("owner"),
}

// group is a group of findings that share a value.
type group struct {
	// Word is the value, and Title its name for users; empty if the value is the name.
	Word, Title string
	Count       int
	// Severities are the group's counts by severity, the worst first; empty if unknown.
	Severities []severityCount
	// Only is the address of a list of only these findings, Rows that of its first rows, All that of the form that
	// decides about all of them, and Rule that of a policy about them.
	Only, Rows, All, Rule string
	value                 string
}

// severityCount is the number of findings of a group with a severity.
type severityCount struct {
	Severity string
	Count    int
}

// grouped is the list as groups.
type grouped struct {
	Groups []group
	// Hidden is the number of groups that are not shown. Without is the number of findings without a group, if all
	// groups are shown.
	Hidden, Without int
}

// groupedBy returns the filter by which the view is grouped. A view that already filters by it is not grouped.
func (v view) groupedBy() (by filter, ok bool) {
	i := slices.IndexFunc(groupings, func(f filter) bool { return f.Name == v.values.Get("group") })
	if i < 0 || v.values.Get(groupings[i].Name) != "" {
		return filter{}, false
	}
	return groupings[i], true
}

// groupName returns the name of the view's grouping.
func (v view) groupName() string {
	if by, ok := v.groupedBy(); ok {
		return by.name()
	}
	return notGrouped
}

const notGrouped = "none"

// name returns the name of a grouping by the filter.
func (f filter) name() string { return "by " + strings.ToLower(f.Label) }

// describeGroups adds to each group its title and its counts by severity.
func (l *listing) describeGroups(ctx context.Context, v *page.Visit, by filter) error {
	if by.Name != "severity" && l.values.Get("severity") == "" {
		// One after another: per organization the service answers one count at a time, and few more may wait.
		high, err := l.countSevere(ctx, v, by, "high")
		if err != nil {
			return err
		}
		medium, err := l.countSevere(ctx, v, by, "medium")
		if err != nil {
			return err
		}
		l.addSeverities(high, medium)
	}
	return l.readTitles(ctx, v, by)
}

// countSevere counts the view's findings of a severity, by a field.
func (l *listing) countSevere(
	ctx context.Context, v *page.Visit, by filter, severity string,
) (client.FieldCounts, error) {
	query := l.filters()
	query.Set("values", strconv.Itoa(allFacetValues))
	query.Set("severity", severity)
	return v.CountsOf(ctx, query, by.Name)
}

// addSeverities adds the counts by severity to each group. What is neither high nor medium is low.
func (g *grouped) addSeverities(high, medium client.FieldCounts) {
	for i := range g.Groups {
		of := &g.Groups[i]
		nHigh, okHigh := page.CountOf(high, of.value)
		nMedium, okMedium := page.CountOf(medium, of.value)
		if !okHigh || !okMedium {
			continue
		}
		for k, n := range []int{int(nHigh), int(nMedium), of.Count - int(nHigh+nMedium)} {
			if n > 0 {
				of.Severities = append(of.Severities, severityCount{severities[k], n})
			}
		}
	}
}

// titled bounds the groups with a title: each title needs a request for one finding.
const titled = 50

// titles return a group's title from one of its findings, for fields whose values are codes.
var titles = map[string]func(page.Finding) string{
	"rule":       func(f page.Finding) string { return f.Details.Title },
	"repo_id":    func(f page.Finding) string { return f.Repo.Name },
	"project_id": func(f page.Finding) string { return f.Project.Name },
}

// readTitles reads the titles of the largest groups.
func (l *listing) readTitles(ctx context.Context, v *page.Visit, by filter) error {
	title, ok := titles[by.Name]
	if !ok {
		return nil
	}
	reading, ctx := errgroup.WithContext(ctx)
	reading.SetLimit(4)
	for i := range l.Groups[:min(len(l.Groups), titled)] {
		reading.Go(func() error {
			of := &l.Groups[i]
			query := l.filters()
			query.Set(by.Name, of.value)
			query.Set("size", "1")
			var found struct {
				Items []page.Finding `json:"items"`
			}
			_, err := v.API.Get(ctx, "/v2/full-findings", query, &found)
			if len(found.Items) > 0 {
				of.Title = ui.Visible(title(found.Items[0]))
			}
			return err
		})
	}
	return reading.Wait()
}

// groupsOf returns the groups for the counts of a field, the largest first.
func groupsOf(counted client.FieldCounts, total int32, of view, by filter) (out grouped) {
	in := 0
	for _, value := range inOrder(by, counted.Values) {
		in += int(value.Count)
		out.Groups = append(out.Groups, newGroup(value, of, by))
	}
	if out.Hidden = int(counted.Distinct) - len(counted.Values); out.Hidden == 0 {
		out.Without = int(total) - in
	}
	return out
}

func newGroup(value client.ValueCount, of view, by filter) group {
	return group{
		Word: by.word(value.Value), Count: int(value.Count), value: value.Value,
		Only: of.with("group", "", by.Name, value.Value),
		Rows: page.Address(listPath, of.resolved(), "group", "", by.Name, value.Value, "part", "rows"),
		All:  of.with("group", "", by.Name, value.Value, "all", "true"),
		Rule: page.Address(newPolicy, of.filters(), by.Name, value.Value),
	}
}
