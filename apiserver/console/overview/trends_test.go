package overview

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/pagetest"
)

func TestWeeksBeginOnMondays(t *testing.T) {
	s := shown{Trends: client.Trends{Days: []client.TrendDay{
		{Day: "2026-11-15", Opened: 1}, {Day: "2026-11-16", Opened: 2}, {Day: "2026-11-22", Closed: 3}, {Day: "2026-11-23", Muted: 4},
	}}}
	want := []week{{Monday: "2026-11-09", Opened: 1}, {Monday: "2026-11-16", Opened: 2, Closed: 3}, {Monday: "2026-11-23", Muted: 4}}
	harness.Same(t, "per week", want, s.perWeek())
}

func TestTheTableLeavesOutDaysOnWhichNothingHappened(t *testing.T) {
	open := client.TrendOpen{Total: 1, Low: 1}
	s := shown{Trends: client.Trends{Days: []client.TrendDay{
		{Day: "2026-11-20", Open: open}, {Day: "2026-11-21", Open: open}, {Day: "2026-11-22", Open: open, Muted: 1}, {Day: "2026-11-23"},
	}}}
	var got []string
	for _, d := range s.days() {
		got = append(got, d.Day)
	}
	harness.Same(t, "days", []string{"2026-11-23", "2026-11-22", "2026-11-20"}, got)
}

func TestWhatGotWorseHasMoreOpenFindingsNow(t *testing.T) {
	now := func(values ...client.ValueCount) client.FindingCounts {
		return client.FindingCounts{Fields: []client.FieldCounts{{Field: "repo_id", Values: values}}}
	}
	s := shown{
		Open: now(client.ValueCount{Value: "same", Count: 5}, client.ValueCount{Value: "more", Count: 9}, client.ValueCount{Value: "graver", Count: 3}),
		High: now(client.ValueCount{Value: "graver", Count: 2}),
	}
	then := client.Trends{Groups: []client.TrendGroup{
		{Value: "same", Before: client.TrendOpen{Total: 5}}, {Value: "more", Before: client.TrendOpen{Total: 1}},
		{Value: "graver", Before: client.TrendOpen{Total: 4, High: 1}}, {Value: "better", Before: client.TrendOpen{Total: 2}},
	}}
	var got []string
	for _, w := range s.gotWorse("repo_id", then) {
		got = append(got, w.Value)
	}
	harness.Same(t, "got worse", []string{"graver", "more"}, got)
}

func TestWithoutItsHistoryTheOverviewHasItsFigures(t *testing.T) {
	for code, status := range map[string]int{"stale": http.StatusInternalServerError, "busy": http.StatusTooManyRequests} {
		service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == trendsPath {
				w.WriteHeader(status)
			}
			fmt.Fprintf(w, `{"code":%q,"detail":"not now","total":7,"fields":[{"field":"status","values":[{"value":"open","count":7}]}]}`, code)
		})
		_, shown := pagetest.Show(t, show, &page.Visit{API: api.New(service, "", "")})
		harness.Contains(t, code, shown, `<a href="/console/findings?status=open">7</a>`, "The history is currently unavailable")
	}
}

// One count and one trend per organization are answered at a time, and few more may wait.
func TestTheOverviewAsksForOneCountAndOneTrendAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lock sync.Mutex
		underWay, answer := map[string]int{}, make(chan struct{})
		service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			lock.Lock()
			underWay[r.URL.Path]++
			lock.Unlock()
			<-answer
			_, _ = w.Write([]byte("{}"))
		})
		go func() { _, _ = show(t.Context(), &page.Visit{API: api.New(service, "", "")}) }()
		synctest.Wait()
		harness.Same(t, "requests under way", map[string]int{page.CountsPath: 1, trendsPath: 1}, underWay)
		close(answer)
	})
}

func TestWhatWasNotCountedIsComparedAsRecorded(t *testing.T) {
	s := shown{
		Open: client.FindingCounts{Fields: []client.FieldCounts{
			{Field: "repo_id", Distinct: 3, Values: []client.ValueCount{{Value: "counted", Count: 9}}},
		}},
		High: client.FindingCounts{Fields: []client.FieldCounts{
			{Field: "repo_id", Distinct: 2, Values: []client.ValueCount{{Value: "counted", Count: 1}}},
		}},
	}
	then := client.Trends{Groups: []client.TrendGroup{
		{Value: "counted", Before: client.TrendOpen{Total: 8, High: 1}, After: client.TrendOpen{Total: 8, High: 8}},
		{Value: "cut", Before: client.TrendOpen{Total: 2}, After: client.TrendOpen{Total: 3, High: 1}},
	}}
	harness.Same(t, "got worse", []worse{
		{Value: "cut", Open: 3, OpenBefore: 2, High: 1}, {Value: "counted", Open: 9, OpenBefore: 8, High: 1, HighBefore: 1},
	}, s.gotWorse("repo_id", then))
}

func TestTheOverviewComparesWithAWeekAgo(t *testing.T) {
	day := func(name string, open int32) client.TrendDay {
		return client.TrendDay{Day: name, Open: client.TrendOpen{Total: open}}
	}
	for want, c := range map[string]struct {
		open int32
		days []client.TrendDay
	}{
		"It got worse: 4 more open than a week ago.": {9, []client.TrendDay{
			day("2026-11-10", 1), day("2026-11-17", 5), day("2026-11-23", 7), day("2026-11-24", 8),
		}},
		"It got better: 3 fewer open than on 20 November 2026.": {2, []client.TrendDay{day("2026-11-20", 5), day("2026-11-24", 2)}},
		"As many are open as on 23 November 2026.":              {5, []client.TrendDay{day("2026-11-23", 5), day("2026-11-24", 6)}},
	} {
		s := shown{Open: client.FindingCounts{Total: c.open}, Trends: client.Trends{Days: c.days}}
		harness.Same(t, "course", want, s.course())
	}
}

func TestThePastLeadsToWhatStillExistsOfIt(t *testing.T) {
	harness.Contains(t, "the list", openedIn("2026-12-28", 7), "created_until=2027-01-04", "created_since=2026-12-28")
}

func TestTheOverviewSaysThatHistoryBeginsToday(t *testing.T) {
	open := client.FindingCounts{Fields: []client.FieldCounts{{Field: "status", Values: []client.ValueCount{{Value: "closed", Count: 3}}}}}
	day := client.TrendDay{Day: "2026-11-23", Open: client.TrendOpen{Total: 3, High: 1, Low: 2}, Opened: 3}
	for _, c := range []struct {
		reason      string
		days        []client.TrendDay
		want, never []string
	}{
		{"nothing is kept yet", nil, []string{"History begins today"}, []string{"<svg", "What got worse"}},
		{"a single day", []client.TrendDay{day}, []string{"History begins today", "High 1", "Low 2", "the only day so far"}, []string{`class="line`}},
		{"two", []client.TrendDay{{Day: "2026-11-22"}, day}, []string{`class="line high"`, "From 22 November 2026"}, []string{"History begins"}},
	} {
		s := shown{Open: open, Trends: client.Trends{Days: c.days}}
		text := pagetest.Text(t, overviewPage(s))
		harness.Contains(t, c.reason, text, c.want...)
		harness.Lacks(t, c.reason, text, append(c.never, "style=")...)
	}
}

func TestTodaysRowIsThatOfTheCurrentCounts(t *testing.T) {
	s := shown{
		Open: client.FindingCounts{Total: 3, Fields: []client.FieldCounts{{Field: "severity", Values: []client.ValueCount{
			{Value: "high", Count: 1}, {Value: "low", Count: 2},
		}}}},
		Trends: client.Trends{Days: []client.TrendDay{{Day: "2026-11-24", Open: client.TrendOpen{Total: 4, Low: 4}}}},
	}
	s.upToDate("2026-11-24")
	harness.Same(t, "today", client.TrendOpen{Total: 3, High: 1, Low: 2}, s.Trends.Days[0].Open)
}
