package findingtrend

import (
	"cmp"
	"context"
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Sum counts the findings of several projects together, for each day from from to to, both inclusive, but not before
// the first row of any project. It also returns the spread of the times to close over all these days. The rows of each
// project must be sorted by day; a day without a row equals the day before it.
//
// The spread of a single project is returned as stored. That of several projects is estimated from their samples, which
// hold all findings of a project with up to ten findings, else ranks that are exact to a twentieth.
//
// With many projects this takes seconds. The only error is the context's.
func Sum(ctx context.Context, projects [][]v1alpha1.FindingTrendDay, from, to v1alpha1.Day) (
	out []v1alpha1.FindingTrendDay, timeToClose *v1alpha1.FindingTrendSpread, err error) {
	first := firstDay(projects)
	from = max(from, first)
	if first == "" || from > to {
		return nil, nil, nil
	}
	var all mixture
	passed := make([]int, len(projects))
	out = make([]v1alpha1.FindingTrendDay, 0, Days(from, to)+1)
	for of := from; of <= to; of = Plus(of, 1) {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		sum, closures := sumOf(of, projects, passed)
		all.merge(closures)
		out = append(out, sum)
	}
	return out, all.spread(), nil
}

// Ends returns the first and the last of the days that Sum returns, if any, without computing those between.
func Ends(projects [][]v1alpha1.FindingTrendDay, from, to v1alpha1.Day) (
	first, last v1alpha1.FindingTrendDay, found bool) {
	begin := firstDay(projects)
	from = max(from, begin)
	if begin == "" || from > to {
		return first, last, false
	}
	passed := make([]int, len(projects))
	first, _ = sumOf(from, projects, passed)
	last, _ = sumOf(to, projects, passed)
	return first, last, true
}

// sumOf returns the sum of a day, and the times to close on it. It updates passed, which holds, by project, how many
// rows are not later than the day. Call it in the order of the days.
func sumOf(of v1alpha1.Day, projects [][]v1alpha1.FindingTrendDay, passed []int) (
	sum v1alpha1.FindingTrendDay, closures mixture) {
	sum.Day = of
	var ages mixture
	for i, rows := range projects {
		for passed[i] < len(rows) && rows[passed[i]].Day <= of {
			passed[i]++
		}
		if passed[i] > 0 {
			add(&sum, &rows[passed[i]-1], &ages, &closures)
		}
	}
	sum.Age, sum.TimeToClose = ages.spread(), closures.spread()
	return sum, closures
}

func firstDay(projects [][]v1alpha1.FindingTrendDay) (first v1alpha1.Day) {
	for _, rows := range projects {
		if len(rows) > 0 && (first == "" || rows[0].Day < first) {
			first = rows[0].Day
		}
	}
	return first
}

// add adds a project's row for the sum's day, or the last one before it.
func add(sum, row *v1alpha1.FindingTrendDay, ages, closures *mixture) {
	sum.Open.Critical += row.Open.Critical
	sum.Open.High += row.Open.High
	sum.Open.Medium += row.Open.Medium
	sum.Open.Low += row.Open.Low
	sum.OpenMuted += row.OpenMuted
	later := int32(Days(row.Day, sum.Day)) //nolint:gosec // a few years at most
	ages.add(row.Age, Open(row), later)
	if later == 0 {
		sum.Opened += row.Opened
		sum.Closed += row.Closed
		sum.Muted += row.Muted
		closures.add(row.TimeToClose, row.Closed, 0)
	}
}

// Open returns how many findings of a row are open, of any severity.
func Open(row *v1alpha1.FindingTrendDay) int32 { return row.Open.High + row.Open.Medium + row.Open.Low }

// mixture combines several spreads.
type mixture struct {
	points []point
	parts  int
	// only is the last added spread; it is the result if parts is 1.
	only v1alpha1.FindingTrendSpread
}

// point represents some of the findings of a project.
type point struct {
	days   int32
	weight float64
}

// add adds a spread of that many findings, which are older by later days now.
func (m *mixture) add(spread *v1alpha1.FindingTrendSpread, findings, later int32) {
	if spread == nil || len(spread.Sample) == 0 {
		return
	}
	m.parts++
	m.only = v1alpha1.FindingTrendSpread{Median: spread.Median + later, P90: spread.P90 + later}
	weight := float64(findings) / float64(len(spread.Sample))
	for _, days := range spread.Sample {
		m.points = append(m.points, point{days + later, weight})
	}
}

func (m *mixture) merge(other mixture) {
	m.parts += other.parts
	m.points = append(m.points, other.points...)
	if other.parts > 0 {
		m.only = other.only
	}
}

func (m *mixture) spread() *v1alpha1.FindingTrendSpread {
	switch m.parts {
	case 0:
		return nil
	case 1:
		return &m.only
	}
	slices.SortFunc(m.points, func(a, b point) int { return cmp.Compare(a.days, b.days) })
	return &v1alpha1.FindingTrendSpread{Median: m.rank(half), P90: m.rank(nineTenths)}
}

// rank returns the given percentile of the days, by weight.
func (m *mixture) rank(of float64) int32 {
	var all, below float64
	for _, p := range m.points {
		all += p.weight
	}
	const rounding = 1e-9 // for weights that are not integers
	for _, p := range m.points {
		if below += p.weight; below >= all*of/percent-rounding {
			return p.days
		}
	}
	return m.points[len(m.points)-1].days
}
