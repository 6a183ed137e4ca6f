package findingtrend

import (
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// row returns a row with that many findings of low severity, and a sample of their ages.
func row(of v1alpha1.Day, low int32, ages ...int32) v1alpha1.FindingTrendDay {
	r := v1alpha1.FindingTrendDay{Day: of, Open: v1alpha1.FindingTrendOpen{Low: low}, Age: Spread(ages)}
	return r
}

func TestASumCarriesRowsForward(t *testing.T) {
	first := row("2026-03-01", 2, 1, 3)
	first.Opened, first.Closed, first.Muted, first.TimeToClose = 2, 1, 1, Spread([]int32{9})
	first.OpenMuted, first.Open.High, first.Open.Critical = 4, 0, 0
	projects := [][]v1alpha1.FindingTrendDay{
		{first, row("2026-03-04", 1, 6)},
		{row("2026-03-03", 3, 0, 0, 0)},
		nil,
	}
	low := func(n int32) v1alpha1.FindingTrendOpen { return v1alpha1.FindingTrendOpen{Low: n} }
	spread := func(median, p90 int32) *v1alpha1.FindingTrendSpread {
		return &v1alpha1.FindingTrendSpread{Median: median, P90: p90}
	}
	want := []v1alpha1.FindingTrendDay{
		{Day: "2026-03-01", Open: low(2), OpenMuted: 4, Opened: 2, Closed: 1, Muted: 1, Age: spread(1, 3), TimeToClose: spread(9, 9)},
		{Day: "2026-03-02", Open: low(2), OpenMuted: 4, Age: spread(2, 4)},
		{Day: "2026-03-03", Open: low(5), OpenMuted: 4, Age: spread(0, 5)},
		{Day: "2026-03-04", Open: low(4), Age: spread(1, 6)},
		{Day: "2026-03-05", Open: low(4), Age: spread(2, 7)},
	}
	got, closed := Sum(projects, "2026-02-01", "2026-03-05")
	harness.Same(t, "from before the history", want, got)
	harness.Same(t, "what was closed took", spread(9, 9), closed)
	got, closed = Sum(projects, "2026-03-04", "2026-03-05")
	if closed != nil {
		t.Errorf("nothing was closed, and took %+v", closed)
	}
	harness.Same(t, "from within", want[3:], got)
	if got, _ := Sum(projects, "2026-01-01", "2026-02-28"); got != nil {
		t.Errorf("before the history: %+v", got)
	}
	if got, _ := Sum(projects, "2026-03-09", "2026-03-05"); got != nil {
		t.Errorf("from a day after the last: %+v", got)
	}
}

func TestASpreadOfSeveralProjectsIsWeighedByTheirFindings(t *testing.T) {
	var many []int32
	for i := range int32(1000) {
		many = append(many, i)
	}
	large := row(today, 1000, many...)
	small := row(today, 2, 5000, 5000)
	got, _ := Sum([][]v1alpha1.FindingTrendDay{{large}, {small}}, today, today)
	harness.Same(t, "age", &v1alpha1.FindingTrendSpread{Median: 550, P90: 950}, got[0].Age)
}
