package readmodel

import (
	"context"
	"errors"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
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

func TestTrendsEndWithTheirClientAndKeepNoCountWaiting(t *testing.T) {
	m, _ := newAcme(t)
	trend := &v1alpha1.FindingTrend{ObjectMeta: meta(acmeNamespace, "trend", 10)}
	trend.Spec.ProjectRef.Name, trend.Spec.Quarter = "proj-1", "2026q1"
	trend.Spec.Days = []v1alpha1.FindingTrendDay{{Day: "2026-03-01"}}
	feed(t, m, projects, project("proj-1", 11))
	show(t, m, trends, trend)
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
