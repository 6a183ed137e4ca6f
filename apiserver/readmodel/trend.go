package readmodel

import (
	"cmp"
	"context"
	"slices"
	"sort"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/internal/findingtrend"
)

// trendItem is a quarter of a project's history.
type trendItem struct {
	project, quarter string
	rows             []v1alpha1.FindingTrendDay
}

// trendLayout sorts the items by quarter.
var trendLayout = &index.Layout[*trendItem]{
	Sorts:  []index.Sort{SortCreatedAt},
	Values: func(i *trendItem) []string { return []string{i.quarter} },
	Keys:   func(*trendItem) []index.Key { return []index.Key{{Field: index.Everything}} },
}

func (m *Model) setTrend(p *partition, object *v1alpha1.FindingTrend, name string) {
	var item *trendItem
	if object != nil {
		item = &trendItem{
			project: string(object.Spec.ProjectRef.Name), quarter: string(object.Spec.Quarter), rows: object.Spec.Days,
		}
	}
	setDirect(m, p, p.trends, p.indexes.trends, name, item)
}

// TrendQuery asks for the history of some of an organization's projects.
type TrendQuery struct {
	// RepoID, ProjectID and Owner filter the projects; nil matches all.
	RepoID, ProjectID, Owner *string
	// From and To are the first and the last day.
	From, To v1alpha1.Day
	// Group is what projects are grouped by: repo_id, project_id or owner; empty for no groups.
	Group string
	// Groups is the maximum number of groups returned.
	Groups int
}

// Trends is the combined history of projects, and the change of each group of them.
type Trends struct {
	Days []v1alpha1.FindingTrendDay
	// TimeToClose covers all findings closed on these days; nil if there are none.
	TimeToClose *v1alpha1.FindingTrendSpread
	Groups      []TrendGroup
}

// TrendGroup holds the state of a group of projects on the first day, or the first day with data about them,
// and on the last day.
type TrendGroup struct {
	Value       string
	First, Last v1alpha1.FindingTrendDay
}

// Trends returns the history of the projects that match. The errors are ErrNoOrganization, slots.ErrBusy and the
// context's.
//
// Only one caller at a time computes an organization's trends.
func (m *Model) Trends(ctx context.Context, organization string, q TrendQuery) (Trends, error) {
	view, err := m.view(organization)
	if err != nil {
		return Trends{}, err
	}
	leave, err := m.trends.Enter(ctx, view)
	if err != nil {
		return Trends{}, err
	}
	defer leave()
	return view.snapshot.Load().trendsOf(ctx, q)
}

func (x *indexes) trendsOf(ctx context.Context, q TrendQuery) (out Trends, err error) {
	all, by := x.histories(q)
	out.Days, out.TimeToClose, err = findingtrend.Sum(ctx, all, q.From, q.To)
	if err != nil {
		return Trends{}, err
	}
	for value, histories := range by {
		if first, last, found := findingtrend.Ends(histories, q.From, q.To); found {
			out.Groups = append(out.Groups, TrendGroup{Value: value, First: first, Last: last})
		}
	}
	slices.SortFunc(out.Groups, func(a, b TrendGroup) int {
		return cmp.Or(cmp.Compare(b.rise(), a.rise()), cmp.Compare(b.change(), a.change()), cmp.Compare(a.Value, b.Value))
	})
	out.Groups = out.Groups[:min(len(out.Groups), q.Groups)]
	return out, nil
}

// rise returns by how much the number of open findings has grown, or that of severity high if it has grown more: fewer
// others hide no new high ones.
func (g *TrendGroup) rise() int32 {
	return max(g.change(), g.Last.Open.High-g.First.Open.High)
}

// change returns by how much the number of open findings has changed.
func (g *TrendGroup) change() int32 { return findingtrend.Open(&g.Last) - findingtrend.Open(&g.First) }

// histories returns the rows of each matching project by day, and those of each group, as far as the days of the query
// need them.
func (x *indexes) histories(q TrendQuery) (all [][]v1alpha1.FindingTrendDay,
	by map[string][][]v1alpha1.FindingTrendDay) {
	rows := map[string][]v1alpha1.FindingTrendDay{}
	for item := range x.trends.With(index.Everything, "") {
		project, there := x.projects.Get(item.project)
		if !there || !matches(q.ProjectID, item.project) || !matches(q.RepoID, project.repoID) ||
			!matches(q.Owner, project.owner) {
			continue
		}
		rows[item.project] = extended(rows[item.project], item.rows, q.From, q.To)
	}
	by = map[string][][]v1alpha1.FindingTrendDay{}
	for id, history := range rows {
		project, _ := x.projects.Get(id)
		all = append(all, history)
		if value := map[string]string{"repo_id": project.repoID, "project_id": id, "owner": project.owner}[q.Group]; value != "" {
			by[value] = append(by[value], history)
		}
	}
	return all, by
}

// extended returns the history and the later rows, as far as the days from from to to need them: those on these days,
// and the last one up to the first day. It does not copy the rows of a single quarter, and changes none.
func extended(history, rows []v1alpha1.FindingTrendDay, from, to v1alpha1.Day) []v1alpha1.FindingTrendDay {
	rows = rows[:upTo(rows, to)]
	if past := upTo(rows, from); past > 0 {
		return slices.Clip(rows[past-1:])
	}
	if len(history) == 0 {
		return slices.Clip(rows)
	}
	return append(history, rows...)
}

// upTo returns how many of the rows are not later than the day.
func upTo(rows []v1alpha1.FindingTrendDay, of v1alpha1.Day) int {
	return sort.Search(len(rows), func(i int) bool { return rows[i].Day > of })
}
