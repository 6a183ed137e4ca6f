// Package overview holds the page that shows the current state, and whether it is improving.
package overview

import (
	"context"
	"embed"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// Files are the page's style sheets and modules.
//
//go:embed *.css *.js
var Files embed.FS

// Routes returns the pages.
func Routes() []page.Route {
	return []page.Route{{Method: http.MethodGet, Path: "", Serve: show}}
}

const (
	trendsPath = "/v2/trends"
	// allValues is how many values of a field are requested, shownValues how many of them are shown.
	allValues   = "1000"
	shownValues = 10
)

// shown is the content of the page. Today's numbers are counted now, and each links to the findings that it counts;
// numbers of the past are as recorded.
type shown struct {
	// Open counts the findings that are reported and not muted, High those of them with severity high. Stale counts those
	// with a stale decision by state, in any state.
	Open, High, Stale client.FindingCounts
	// Trends covers the last 90 days. ByRepository and ByProject hold what was open a week ago.
	Trends, ByRepository, ByProject client.Trends
	// NoTrends reports that the service could not return these.
	NoTrends bool
	// CanDecide reports that the key may decide about findings.
	CanDecide bool
}

func show(ctx context.Context, v *page.Visit) (page.Response, error) {
	s := shown{CanDecide: v.May("findings:triage")}
	group, all := errgroup.WithContext(ctx)
	group.Go(func() error { return s.readCounts(all, v.API) })
	group.Go(func() error {
		err := s.readTrends(all, v.API)
		if s.NoTrends = api.IsStale(err) || api.IsBusy(err); s.NoTrends {
			return nil
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return page.Response{}, err
	}
	s.upToDate(time.Now().UTC().Format(time.DateOnly))
	return page.Response{
		Title: "Overview", Body: overviewPage(s),
		Styles: []string{"overview/overview.css"}, Modules: []string{"ui/follow.js", "overview/tour.js"},
	}, nil
}

func (s *shown) readCounts(ctx context.Context, service *api.Client) error {
	return readInOrder(ctx, service, page.CountsPath, []question{
		{url.Values{"status": {"open"}, "values": {allValues}}, &s.Open},
		{url.Values{"status": {"open"}, "severity": {"high"}, "values": {allValues}}, &s.High},
		{url.Values{"stale": {"true"}, "field": {"status"}}, &s.Stale},
	})
}

func (s *shown) readTrends(ctx context.Context, service *api.Client) error {
	weekAgo := time.Now().UTC().AddDate(0, 0, -daysOfWeek).Format(time.DateOnly)
	return readInOrder(ctx, service, trendsPath, []question{
		{url.Values{}, &s.Trends},
		{url.Values{"from": {weekAgo}, "group": {"repo_id"}, "values": {allValues}}, &s.ByRepository},
		{url.Values{"from": {weekAgo}, "group": {"project_id"}, "values": {allValues}}, &s.ByProject},
	})
}

// question is the query of a request, and what its response is read into.
type question struct {
	query url.Values
	into  any
}

// readInOrder sends one request after another. Per organization the service answers one count and one trend at a time,
// and few others may wait: requests sent together would take more of these places, and be answered no sooner.
func readInOrder(ctx context.Context, service *api.Client, path string, questions []question) error {
	for _, ask := range questions {
		if _, err := service.Get(ctx, path, ask.query, ask.into); err != nil {
			return err
		}
	}
	return nil
}

// figures returns the numbers at the top. Each links to the findings that it counts.
func (s shown) figures() []ui.Figure {
	return []ui.Figure{
		{Name: "Open", Count: s.Open.Total, Link: list("status", "open")},
		{Name: "Critical", Count: s.critical(), Link: list("status", "open", "severity", "high", "min_score", "9")},
		{Name: "High", Count: s.High.Total, Link: list("status", "open", "severity", "high")},
		{Name: "Undecided", Count: count(s.Open, "user_status", "open"), Link: list("status", "open", "user_status", "open")},
		{Name: "In doubt", Count: count(s.Stale, "status", "open"), Link: list("status", "open", "stale", "true")},
		{Name: "Muted", Count: count(s.Open, "status", "open_muted"), Link: list("status", "open_muted")},
		{Name: "Muted, in doubt", Count: count(s.Stale, "status", "open_muted"),
			Link: list("status", "open_muted", "stale", "true")},
		{Name: "Closed", Count: count(s.Open, "status", "closed"), Link: list("status", "closed")},
	}
}

// critical counts the findings of severity high with a score of at least 9.
func (s shown) critical() int32 { return count(s.High, "min_score", "9") }

// all counts the findings in any state: the counts of a field ignore the filter on that field.
func (s shown) all() (all int32) {
	for _, state := range values(s.Open, "status") {
		all += state.Count
	}
	return all
}

// list returns the address of the findings that a number counts.
func list(pairs ...string) string {
	return page.Address("/console/findings", nil, pairs...)
}

// count returns how many findings have the value of a field.
func count(of client.FindingCounts, field, value string) int32 { return countOr(of, field, value, 0) }

// countOr returns how many findings have the value of a field. If only the most frequent values were counted, and this
// one is not among them, it returns the recorded number.
func countOr(of client.FindingCounts, field, value string, recorded int32) int32 {
	counts, _ := page.FieldOf(of, field)
	if count, known := page.CountOf(counts, value); known {
		return count
	}
	return recorded
}

func values(of client.FindingCounts, field string) []client.ValueCount {
	counts, _ := page.FieldOf(of, field)
	return counts.Values
}

// first returns the values that are shown.
func first(all []client.ValueCount) []client.ValueCount { return all[:min(len(all), shownValues)] }

// share returns a count as a percentage of the whole, for a bar.
func share(count, whole int32) int {
	if whole == 0 {
		return 0
	}
	return int(int64(count) * 100 / int64(whole))
}
