// Package overview holds the page that says how things stand.
package overview

import (
	"context"
	"embed"
	"net/http"
	"net/url"

	"golang.org/x/sync/errgroup"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// Files are the page's style sheets.
//
//go:embed *.css
var Files embed.FS

// Routes returns the pages.
func Routes() []page.Route {
	return []page.Route{{Method: http.MethodGet, Path: "", Serve: show}}
}

const countsPath = "/v2/finding-counts"

// shown is what the page shows. All of it is counted now, and each number leads to the findings that it counts.
type shown struct {
	// Open are those that nobody has muted and that scanners still report.
	Open client.FindingCounts
	// All are those of any state, by state.
	All client.FindingCounts
}

func show(ctx context.Context, v *page.Visit) (page.Response, error) {
	var s shown
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error {
		_, err := v.API.Get(both, countsPath, url.Values{"status": {"open"}, "values": {"10"}}, &s.Open)
		return err
	})
	group.Go(func() error {
		_, err := v.API.Get(both, countsPath, url.Values{"field": {"status"}}, &s.All)
		return err
	})
	if err := group.Wait(); err != nil {
		return page.Response{}, err
	}
	return page.Response{Title: "Overview", Body: overviewPage(s), Styles: []string{"overview/overview.css"}, Modules: []string{"ui/follow.js"}}, nil
}

// figures are the numbers above all others. Each leads to the findings that it counts.
func (s shown) figures() []ui.Figure {
	return []ui.Figure{
		{Name: "Open", Count: s.Open.Total, Link: list("status", "open")},
		{Name: "High", Count: count(s.Open, "severity", "high"), Link: list("status", "open", "severity", "high")},
		{Name: "Undecided", Count: count(s.Open, "user_status", "open"), Link: list("status", "open", "user_status", "open")},
		{Name: "In doubt", Count: count(s.Open, "stale", "true"), Link: list("status", "open", "stale", "true")},
		{Name: "Muted", Count: count(s.All, "status", "open_muted"), Link: list("status", "open_muted")},
		{Name: "Closed", Count: count(s.All, "status", "closed"), Link: list("status", "closed")},
	}
}

// list is the address of the findings that a number counts.
func list(pairs ...string) string {
	return page.Address("/console/findings", nil, pairs...)
}

// count is a value of a field and how many findings have it.
func count(of client.FindingCounts, field, value string) int32 {
	for _, v := range values(of, field) {
		if v.Value == value {
			return v.Count
		}
	}
	return 0
}

func values(of client.FindingCounts, field string) []client.ValueCount {
	for _, f := range of.Fields {
		if f.Field == field {
			return f.Values
		}
	}
	return nil
}

// share is how much of the whole a count is, in percent, for a bar.
func share(count, whole int32) int {
	if whole == 0 {
		return 0
	}
	return int(int64(count) * 100 / int64(whole))
}
