package readmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingtrend"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// interrupted is a canceled context that calls do when its error is read.
type interrupted struct {
	context.Context
	do func()
}

func (c interrupted) Err() error {
	c.do()
	return context.Canceled
}

// trendOf returns a quarter of a project's history: the open findings of each day from 1 March on.
func trendOf(project v1alpha1.ResourceName, version int, open ...v1alpha1.FindingTrendOpen) *v1alpha1.FindingTrend {
	trend := &v1alpha1.FindingTrend{ObjectMeta: meta(acmeNamespace, "trend-"+string(project), version)}
	trend.Spec.ProjectRef.Name, trend.Spec.Quarter = project, "2026q1"
	for i, o := range open {
		trend.Spec.Days = append(trend.Spec.Days, v1alpha1.FindingTrendDay{Day: findingtrend.Plus("2026-03-01", i), Open: o})
	}
	return trend
}

func TestGroupsAreOrderedByTheLargerIncreaseAndAmongEqualsThoseThatFellComeLast(t *testing.T) {
	m, _ := newAcme(t)
	type open = v1alpha1.FindingTrendOpen
	for i, rows := range [][]open{
		{{Low: 9}, {Low: 5}}, {{Low: 6}, {High: 5}}, {{Low: 1}, {Low: 4}}, {{High: 3}, {High: 1}}, {{Low: 5}, {High: 5}},
		{{Low: 1}, {Low: 1}},
	} {
		name := fmt.Sprint("proj-", i)
		feed(t, m, projects, project(name, 10+i))
		show(t, m, trends, trendOf(v1alpha1.ResourceName(name), 20+i, rows...))
	}
	got, err := m.Trends(t.Context(), acme, TrendQuery{From: "2026-03-01", To: "2026-03-02", Group: "project_id", Groups: 5})
	harness.Must(t, err)
	var worst []string
	for _, group := range got.Groups {
		worst = append(worst, group.Value)
	}
	harness.Same(t, "the groups", []string{"proj-4", "proj-1", "proj-2", "proj-5", "proj-0"}, worst)
}

// Else each request copies the whole history of all projects.
func TestTrendsReadOnlyTheRowsThatTheirDaysNeed(t *testing.T) {
	m, _ := newAcme(t)
	whole := map[string][]v1alpha1.FindingTrendDay{}
	for i, id := range []string{"proj-1", "proj-2"} {
		feed(t, m, projects, project(id, 10+i))
		for j, quarter := range []v1alpha1.Quarter{"2025q4", "2026q1", "2026q2"} {
			trend := trendOf(v1alpha1.ResourceName(id), 20+3*i+j)
			trend.Name, trend.Spec.Quarter = fmt.Sprintf("%s-%s", id, quarter), quarter
			for n := range 4 {
				trend.Spec.Days = append(trend.Spec.Days, v1alpha1.FindingTrendDay{
					Day:  findingtrend.Plus("2025-10-01", 91*j+10*n+i),
					Open: v1alpha1.FindingTrendOpen{Low: int32(100*i + 10*j + n)},
				})
			}
			whole[id] = append(whole[id], trend.Spec.Days...)
			show(t, m, trends, trend)
		}
	}
	view, err := m.view(acme)
	harness.Must(t, err)
	for _, c := range []struct {
		reason   string
		from, to v1alpha1.Day
		project  *string
		rows     int // of all projects
	}{
		{"days before all rows", "2025-09-01", "2025-09-30", nil, 0},
		{"all days", "2025-09-01", "2026-12-31", nil, 24},
		{"one project", "2025-09-01", "2026-12-31", new("proj-1"), 12},
		{"within a quarter", "2026-01-11", "2026-01-21", nil, 4},
		{"across quarters", "2025-11-01", "2026-01-10", nil, 5},
		{"after all rows", "2026-11-01", "2026-11-30", nil, 2},
	} {
		q := TrendQuery{From: c.from, To: c.to, ProjectID: c.project, Group: "project_id", Groups: 2}
		read, _ := view.snapshot.Load().histories(q)
		rows := 0
		for _, history := range read {
			rows += len(history)
		}
		harness.Same(t, "the rows read: "+c.reason, c.rows, rows)
		var complete [][]v1alpha1.FindingTrendDay
		var groups []TrendGroup
		for _, id := range []string{"proj-1", "proj-2"} {
			if c.project != nil && id != *c.project {
				continue
			}
			complete = append(complete, whole[id])
			if first, last, found := findingtrend.Ends([][]v1alpha1.FindingTrendDay{whole[id]}, c.from, c.to); found {
				groups = append(groups, TrendGroup{Value: id, First: first, Last: last})
			}
		}
		want, _, err := findingtrend.Sum(t.Context(), complete, c.from, c.to)
		harness.Must(t, err)
		got, err := m.Trends(t.Context(), acme, q)
		harness.Must(t, err)
		harness.Same(t, "the days: "+c.reason, want, got.Days)
		slices.SortFunc(got.Groups, func(a, b TrendGroup) int { return cmp.Compare(a.Value, b.Value) })
		harness.Same(t, "the groups: "+c.reason, groups, got.Groups)
	}
}

func TestTrendsEndWithTheirClientAndKeepNoCountWaiting(t *testing.T) {
	m, _ := newAcme(t)
	feed(t, m, projects, project("proj-1", 11))
	show(t, m, trends, trendOf("proj-1", 10, v1alpha1.FindingTrendOpen{}))
	asked := 0
	ctx := interrupted{t.Context(), func() {
		asked++
		hasty, cancel := context.WithTimeout(t.Context(), harness.Patience)
		defer cancel()
		_, err := m.CountFindings(hasty, acme, CountQuery{})
		harness.Must(t, err)
	}}
	if _, err := m.Trends(ctx, acme, TrendQuery{From: "2026-03-01", To: "2026-03-31"}); !errors.Is(err, context.Canceled) || asked != 1 {
		t.Errorf("it checks %d times whether its client is there, and returns %v", asked, err)
	}
}
