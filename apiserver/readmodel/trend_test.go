package readmodel

import (
	"context"
	"errors"
	"fmt"
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
