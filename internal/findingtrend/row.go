package findingtrend

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// criticalScore is the lowest score that CVSS rates as critical, in tenths.
const criticalScore = 90

// Row counts a project's findings as of the end of a day, or as of now if that is earlier.
func Row(of v1alpha1.Day, findings []v1alpha1.Finding, now time.Time) v1alpha1.FindingTrendDay {
	row := v1alpha1.FindingTrendDay{Day: of}
	start := Start(of)
	end := start.Add(day)
	past := !now.Before(end)
	var ages, closures []int32
	for i := range findings {
		f := &findings[i]
		state := findingstate.State(f)
		if past {
			state = stateAt(f, end.Add(-1))
		}
		switch state {
		case v1alpha1.FindingStateOpen:
			count(&row.Open, &f.Spec.Details)
			ages = append(ages, age(f, start))
		case v1alpha1.FindingStateOpenMuted:
			row.OpenMuted++
		case v1alpha1.FindingStateClosed:
		}
		h := between(f, start, end)
		row.Opened += one(h.opened)
		row.Muted += one(h.muted)
		if h.closed {
			row.Closed++
			closures = append(closures, age(f, h.closedAt))
		}
	}
	row.Age, row.TimeToClose = Spread(ages), Spread(closures)
	return row
}

func count(open *v1alpha1.FindingTrendOpen, details *v1alpha1.FindingDetails) {
	switch details.Severity {
	case v1alpha1.LevelHigh:
		open.High++
		if score, ok := findingquery.Tenths(details.Score); ok && score >= criticalScore {
			open.Critical++
		}
	case v1alpha1.LevelMedium:
		open.Medium++
	case v1alpha1.LevelLow:
		open.Low++
	}
}

func one(is bool) int32 {
	if is {
		return 1
	}
	return 0
}

// age returns how many days a finding has been known at a time. It counts calendar days, so that it grows by
// one per day.
func age(f *v1alpha1.Finding, at time.Time) int32 {
	return max(0, number(at)-number(findingstate.CreatedAt(f).Time))
}

// number counts the days since 1970.
func number(t time.Time) int32 { return int32(t.Unix() / int64(day.Seconds())) } //nolint:gosec // a few centuries

// Spread returns the distribution of numbers of days; nil if there are none. It sorts its argument.
func Spread(days []int32) *v1alpha1.FindingTrendSpread {
	if len(days) == 0 {
		return nil
	}
	slices.Sort(days)
	spread := &v1alpha1.FindingTrendSpread{Median: rank(days, half), P90: rank(days, nineTenths)}
	if len(days) <= v1alpha1.MaxTrendSample {
		spread.Sample = slices.Clone(days)
		return spread
	}
	for i := range v1alpha1.MaxTrendSample {
		// The middle value of each of the equal parts.
		spread.Sample = append(spread.Sample, days[(2*i+1)*len(days)/(2*v1alpha1.MaxTrendSample)])
	}
	return spread
}

// half and nineTenths are ranks, in percent.
const (
	half       = 50
	nineTenths = 90
	percent    = 100
)

// rank returns the given percentile of the sorted days.
func rank(days []int32, of int) int32 { return days[(len(days)*of+percent-1)/percent-1] }

// carry returns the row for a later day if nothing has happened since: the same findings, older by the days between.
func carry(row v1alpha1.FindingTrendDay, to v1alpha1.Day) v1alpha1.FindingTrendDay {
	carried := v1alpha1.FindingTrendDay{Day: to, Open: row.Open, OpenMuted: row.OpenMuted}
	if row.Age != nil {
		later := int32(Days(row.Day, to)) //nolint:gosec // a few years at most
		carried.Age = row.Age.DeepCopy()
		carried.Age.Median += later
		carried.Age.P90 += later
		for i := range carried.Age.Sample {
			carried.Age.Sample[i] += later
		}
	}
	return carried
}

// Continue returns the rows that are new or have changed since the last write; none if nothing has happened. last is
// the last stored row; nil if there is none.
//
// A past day is counted if anything happened on it after the last write: the last row was written before its day ended,
// and after that no controller may have run for days.
func Continue(last *v1alpha1.FindingTrendDay, written time.Time, findings []v1alpha1.Finding,
	now time.Time) []v1alpha1.FindingTrendDay {
	today := Of(now)
	if last == nil {
		if len(findings) == 0 {
			return nil
		}
		return []v1alpha1.FindingTrendDay{Row(today, findings, now)}
	}
	if last.Day > today {
		return nil // the clock was set back
	}
	var rows []v1alpha1.FindingTrendDay
	before := *last
	// If no controller ran for years, only the last days are filled in.
	for of := max(last.Day, Plus(today, -v1alpha1.MaxTrendDays)); of <= today; of = Plus(of, 1) {
		known := before
		if of > before.Day {
			known = carry(before, of)
		}
		row := known
		if of == today || eventful(findings, Start(of), Start(of).Add(day), written) {
			row = Row(of, findings, now)
		}
		if of == last.Day {
			atLeast(&row, last)
		}
		if !equality.Semantic.DeepEqual(row, known) {
			rows = append(rows, row)
		}
		before = row
	}
	return rows
}

// eventful reports whether anything happened between two times, from inclusive, to exclusive, that the last write
// cannot have counted: it happened later, or the finding was created later, as by a scan that began before the write.
func eventful(findings []v1alpha1.Finding, from, to, written time.Time) bool {
	since := slices.MaxFunc([]time.Time{from, written}, time.Time.Compare)
	for i := range findings {
		f := &findings[i]
		if created := findingstate.CreatedAt(f).Time; created.Before(to) &&
			(!created.Before(since) || !f.CreationTimestamp.Time.Before(written.Truncate(time.Second))) {
			return true
		}
		if slices.ContainsFunc(f.Status.Transitions, func(t v1alpha1.Transition) bool {
			return !t.At.Time.Before(since) && t.At.Time.Before(to)
		}) {
			return true
		}
	}
	return false
}

// atLeast keeps the events counted on the day itself, which can only become more: their findings may have been removed
// since.
func atLeast(row, counted *v1alpha1.FindingTrendDay) {
	row.Opened, row.Muted = max(row.Opened, counted.Opened), max(row.Muted, counted.Muted)
	if row.Closed < counted.Closed {
		row.Closed, row.TimeToClose = counted.Closed, counted.TimeToClose
	}
}

// Put inserts row into the rows, or replaces the row of the same day, and returns them.
func Put(rows []v1alpha1.FindingTrendDay, row v1alpha1.FindingTrendDay) []v1alpha1.FindingTrendDay {
	at, found := slices.BinarySearchFunc(rows, row.Day, byDay)
	if found {
		rows[at] = row
		return rows
	}
	return slices.Insert(rows, at, row)
}

func byDay(row v1alpha1.FindingTrendDay, of v1alpha1.Day) int { return cmp.Compare(row.Day, of) }
