package overview

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

const (
	daysOfWeek = 7
	// weeks is how many weeks are shown, worst how many of the groups that got worse.
	weeks = 12
	worst = 5
)

// history returns the chart of open findings over time.
func (s shown) history() lineChart {
	lines := []line{
		{Name: "Critical", Class: "critical"}, {Name: "High", Class: "high"}, {Name: "Medium", Class: "medium"},
		{Name: "Low", Class: "low"},
	}
	for _, d := range s.Trends.Days {
		for i, v := range []int32{d.Open.Critical, d.Open.High, d.Open.Medium, d.Open.Low} {
			lines[i].Values = append(lines[i].Values, v)
		}
	}
	return newLineChart(lines)
}

// days returns the rows of the table beside the chart, the latest first: the days with changes, and the first day.
func (s shown) days() []client.TrendDay {
	var out []client.TrendDay
	for i, d := range s.Trends.Days {
		if i == 0 || d.Open != s.Trends.Days[i-1].Open || d.Opened+d.Closed+d.Muted > 0 {
			out = append(out, d)
		}
	}
	slices.Reverse(out)
	return out
}

func (s shown) firstDay() string {
	if len(s.Trends.Days) == 0 {
		return ""
	}
	return s.Trends.Days[0].Day
}

func (s shown) lastDay() string {
	if n := len(s.Trends.Days); n > 0 {
		return s.Trends.Days[n-1].Day
	}
	return ""
}

// weekBefore returns the day a week before another.
func weekBefore(of string) string {
	return startOf(of).AddDate(0, 0, -daysOfWeek).Format(time.DateOnly)
}

// isYoung reports whether there is no record from a week ago. Today is then compared with the first day.
func (s shown) isYoung() bool { return s.firstDay() > weekBefore(s.lastDay()) }

// weekAgo returns the day that today is compared with.
func (s shown) weekAgo() client.TrendDay {
	then := s.Trends.Days[0]
	for _, d := range s.Trends.Days {
		if d.Day <= weekBefore(s.lastDay()) {
			then = d
		}
	}
	return then
}

// course describes whether more or fewer findings are open than a week ago.
func (s shown) course() string {
	then := "a week ago."
	if s.isYoung() {
		then = "on " + long(s.firstDay()) + "."
	}
	switch change := s.Open.Total - s.weekAgo().Open.Total; {
	case change > 0:
		return "It got worse: " + ui.Thousands(change) + " more open than " + then
	case change < 0:
		return "It got better: " + ui.Thousands(-change) + " fewer open than " + then
	default:
		return "As many are open as " + then
	}
}

// upToDate replaces the numbers of the last day, if it is today, by the current ones: the recorded ones are up to an
// hour old.
func (s *shown) upToDate(today string) {
	if s.lastDay() != today {
		return
	}
	open := &s.Trends.Days[len(s.Trends.Days)-1].Open
	open.Total, open.Critical, open.High = s.Open.Total, s.critical(), count(s.Open, "severity", "high")
	open.Medium, open.Low = count(s.Open, "severity", "medium"), count(s.Open, "severity", "low")
}

// age returns the age of open findings; nil if there are none, or it is unknown.
func (s shown) age() *client.TrendSpread {
	if n := len(s.Trends.Days); n > 0 {
		return s.Trends.Days[n-1].Age
	}
	return nil
}

// week holds the changes in the seven days from a Monday.
type week struct {
	Monday                string
	Opened, Closed, Muted int32
}

// perWeek returns the last recorded weeks, the earliest first.
func (s shown) perWeek() []week {
	var out []week
	for _, d := range s.Trends.Days {
		monday := mondayOf(d.Day)
		if n := len(out); n == 0 || out[n-1].Monday != monday {
			out = append(out, week{Monday: monday})
		}
		w := &out[len(out)-1]
		w.Opened += d.Opened
		w.Closed += d.Closed
		w.Muted += d.Muted
	}
	return out[max(0, len(out)-weeks):]
}

func mondayOf(of string) string {
	start := startOf(of)
	since := (int(start.Weekday()) - int(time.Monday) + daysOfWeek) % daysOfWeek
	return start.AddDate(0, 0, -since).Format(time.DateOnly)
}

// startOf returns the start of a day of the API.
func startOf(day string) time.Time {
	start, _ := time.Parse(time.DateOnly, day) // the contract guarantees a date
	return start
}

func weekChart(all []week) barChart {
	lines := []line{{Name: "opened", Class: "opened"}, {Name: "closed", Class: "closed"}, {Name: "muted", Class: "muted"}}
	var names []string
	for _, w := range all {
		names = append(names, short(w.Monday))
		for i, v := range []int32{w.Opened, w.Closed, w.Muted} {
			lines[i].Values = append(lines[i].Values, v)
		}
	}
	return newBarChart(names, lines)
}

// short formats a day for a chart's axis.
func short(of string) string { return startOf(of).Format("2 Jan") }

// long formats a day for a sentence.
func long(of string) string { return startOf(of).Format("2 January 2006") }

// openedIn returns the address of the list of findings that were found in that many days from a day on, and still
// exist.
func openedIn(from string, days int) string {
	return list("created_since", from+"T00:00:00Z", "created_until", until(from, days))
}

// closedIn returns the address of the list of closed findings that were last changed in those days.
func closedIn(from string, days int) string {
	return list("status", "closed", "updated_since", from+"T00:00:00Z", "updated_until", until(from, days))
}

func until(from string, days int) string {
	return startOf(from).AddDate(0, 0, days).Format(time.RFC3339)
}

// worse is a repository or a project that has more open findings than a week ago, or more of severity high.
type worse struct {
	Value, Since                       string
	Open, OpenBefore, High, HighBefore int32
}

func (w worse) rise() int32 { return w.Open - w.OpenBefore }

func (w worse) highRise() int32 { return w.High - w.HighBefore }

// gotWorse compares the open findings with those of a week ago, or with the first recorded day. The groups with the
// largest rise of severity high come first.
func (s shown) gotWorse(field string, then client.Trends) []worse {
	var out []worse
	for _, group := range then.Groups {
		w := worse{
			Value: group.Value, Since: group.Since,
			Open: countOr(s.Open, field, group.Value, group.After.Total), OpenBefore: group.Before.Total,
			High: countOr(s.High, field, group.Value, group.After.High), HighBefore: group.Before.High,
		}
		if w.rise() > 0 || w.highRise() > 0 {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b worse) int {
		return cmp.Or(cmp.Compare(b.highRise(), a.highRise()), cmp.Compare(b.rise(), a.rise()), cmp.Compare(a.Value, b.Value))
	})
	return out[:min(len(out), worst)]
}

// signed formats a change with its sign.
func signed(change int32) string {
	switch {
	case change > 0:
		return "+" + ui.Thousands(change)
	case change < 0:
		return "\u2212" + ui.Thousands(-change)
	default:
		return "\u00b10"
	}
}

// described returns a text description of the line chart, for screen readers.
func described(c lineChart, from, to string) string {
	var last []string
	for _, e := range c.Endings {
		last = append(last, e.Word)
	}
	if from == to {
		return "On " + long(to) + ", the only day so far: " + strings.Join(last, ", ") + "."
	}
	return "From " + long(from) + " to " + long(to) + ". On the last day: " + strings.Join(last, ", ") +
		". The numbers of all days are in the table below."
}
