package findingtrend

import (
	"context"
	"errors"
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
	first.OpenMuted, first.Open.Critical, first.Open.High, first.Open.Medium = 4, 1, 2, 3
	projects := [][]v1alpha1.FindingTrendDay{
		{first, row("2026-03-04", 1, 6)},
		{row("2026-03-03", 3, 0, 0, 0)},
		nil,
	}
	low := func(n int32) v1alpha1.FindingTrendOpen { return v1alpha1.FindingTrendOpen{Low: n} }
	open := func(low int32) v1alpha1.FindingTrendOpen {
		return v1alpha1.FindingTrendOpen{Critical: 1, High: 2, Medium: 3, Low: low}
	}
	spread := func(median, p90 int32) *v1alpha1.FindingTrendSpread {
		return &v1alpha1.FindingTrendSpread{Median: median, P90: p90}
	}
	want := []v1alpha1.FindingTrendDay{
		{Day: "2026-03-01", Open: open(2), OpenMuted: 4, Opened: 2, Closed: 1, Muted: 1, Age: spread(1, 3), TimeToClose: spread(9, 9)},
		{Day: "2026-03-02", Open: open(2), OpenMuted: 4, Age: spread(2, 4)},
		{Day: "2026-03-03", Open: open(5), OpenMuted: 4, Age: spread(3, 5)},
		{Day: "2026-03-04", Open: low(4), Age: spread(1, 6)},
		{Day: "2026-03-05", Open: low(4), Age: spread(2, 7)},
	}
	got, closed := sum(t, projects, "2026-02-01", "2026-03-05")
	harness.Same(t, "from before the history", want, got)
	harness.Same(t, "what was closed took", spread(9, 9), closed)
	got, closed = sum(t, projects, "2026-03-04", "2026-03-05")
	if closed != nil {
		t.Errorf("nothing was closed, and took %+v", closed)
	}
	harness.Same(t, "from within", want[3:], got)
	if got, _ := sum(t, projects, "2026-01-01", "2026-02-28"); got != nil {
		t.Errorf("before the history: %+v", got)
	}
	if got, _ := sum(t, projects, "2026-03-09", "2026-03-05"); got != nil {
		t.Errorf("from a day after the last: %+v", got)
	}
}

func sum(t *testing.T, projects [][]v1alpha1.FindingTrendDay, from, to v1alpha1.Day) (
	[]v1alpha1.FindingTrendDay, *v1alpha1.FindingTrendSpread) {
	t.Helper()
	days, closed, err := Sum(t.Context(), projects, from, to)
	harness.Must(t, err)
	return days, closed
}

func TestTheEndsOfASumAreItsFirstAndLastDay(t *testing.T) {
	projects := [][]v1alpha1.FindingTrendDay{
		{row("2026-03-01", 2, 1, 3), row("2026-03-02", 7, 1), row("2026-03-04", 1, 6)},
		{row("2026-03-03", 3, 0, 0, 0)},
	}
	for _, span := range [][2]v1alpha1.Day{
		{"2026-02-01", "2026-03-05"}, {"2026-03-02", "2026-03-03"}, {"2026-03-03", "2026-03-03"},
		{"2026-01-01", "2026-02-28"}, {"2026-03-09", "2026-03-05"},
	} {
		days, _ := sum(t, projects, span[0], span[1])
		first, last, found := Ends(projects, span[0], span[1])
		harness.Same(t, string(span[0]+" to "+span[1])+": found", len(days) > 0, found)
		if found {
			harness.Same(t, "first", days[0], first)
			harness.Same(t, "last", days[len(days)-1], last)
		}
	}
}

func TestASumEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	projects := [][]v1alpha1.FindingTrendDay{{row("2026-03-01", 2, 1, 3)}}
	if days, _, err := Sum(ctx, projects, "2026-03-01", "2026-03-05"); !errors.Is(err, context.Canceled) {
		t.Errorf("it sums %d days and returns %v", len(days), err)
	}
}

func TestASpreadOfSeveralProjectsIsWeighedByTheirFindings(t *testing.T) {
	var many []int32
	for i := range int32(1000) {
		many = append(many, i)
	}
	large := row(today, 1000, many...)
	small := row(today, 2, 5000, 5000)
	got, _ := sum(t, [][]v1alpha1.FindingTrendDay{{large}, {small}}, today, today)
	harness.Same(t, "age", &v1alpha1.FindingTrendSpread{Median: 550, P90: 950}, got[0].Age)
}
