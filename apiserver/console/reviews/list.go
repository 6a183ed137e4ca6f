// Package reviews holds the pages of reviews: which pull requests were reviewed, and which issues each would introduce.
package reviews

import (
	"context"
	"embed"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// Files are the pages' style sheets.
//
//go:embed *.css
var Files embed.FS

const (
	listPath = "/console/reviews"
	apiPath  = "/v1/reviews"
)

var styles = []string{"reviews/reviews.css"}

// Routes returns the pages.
func Routes() []page.Route {
	return []page.Route{
		{Method: http.MethodGet, Path: "reviews", Serve: list},
		{Method: http.MethodGet, Path: "reviews/:id", Serve: show},
		{Method: http.MethodGet, Path: "reviews/:id/issues/:issue", Serve: showIssue},
		{Method: http.MethodPost, Path: "reviews/:id/issues/:issue", Serve: decide},
	}
}

// listing is the content of the list.
type listing struct {
	client.ReviewList
	view url.Values
}

func list(ctx context.Context, v *page.Visit) (page.Response, error) {
	view, err := v.View("custom", "status", "start_time", "end_time", "sort", "order")
	if err != nil {
		return page.Response{}, err
	}
	l := listing{view: view}
	if err := v.List(ctx, apiPath, asked(l.view), &l.ReviewList); err != nil {
		return page.Response{}, err
	}
	return page.Response{Title: "Reviews", Body: listPage(l), Styles: styles}, nil
}

// asked returns the query for the REST API, with days converted to times. The API excludes the end, so the end of a day
// is the start of the next.
func asked(view url.Values) url.Values {
	query := maps.Clone(view)
	for name, later := range map[string]int{"start_time": 0, "end_time": 1} {
		if day, err := time.Parse(time.DateOnly, view.Get(name)); err == nil {
			query.Set(name, day.AddDate(0, 0, later).Format(time.RFC3339))
		}
	}
	return query
}

// named are the lists with names, and their names for users.
var named = []ui.Option{
	{Value: "", Word: "All"},
	{Value: "open_with_issues", Word: "Open with issues"},
	{Value: "merged_with_issues", Word: "Merged with issues"},
	{Value: "reviewed", Word: "Reviewed"},
	{Value: "not_reviewed", Word: "Not reviewed"},
}

func (l listing) tabs() (tabs []ui.Tab) {
	for _, n := range named {
		link := page.Address(listPath, l.view, "custom", n.Value)
		tabs = append(tabs, ui.Tab{Word: n.Word, Link: link, Current: l.view.Get("custom") == n.Value})
	}
	return tabs
}

// filters of the list.
var filters = []ui.Filter{
	{Name: "custom", Type: ui.Hidden},
	{Name: "status", Label: "Pull request", Any: "any", Options: []ui.Option{
		{Value: "open", Word: "open"}, {Value: "merged", Word: "merged"}, {Value: "closed", Word: "closed"},
	}},
	{Name: "start_time", Label: "Changed from", Type: "date"},
	{Name: "end_time", Label: "Changed until", Type: "date"},
	{Name: "sort", Label: "Sort by", Any: "last change", Options: []ui.Option{
		{Value: "open_issue_count", Word: "open issues"}, {Value: "pr_number", Word: "number"},
		{Value: "pr_title", Word: "title"}, {Value: "pr_author", Word: "author"},
		{Value: "repo_name", Word: "repository"}, {Value: "pr_status", Word: "state"},
	}},
	{Name: "order", Label: "Order", Any: "descending", Options: []ui.Option{
		{Value: "asc", Word: "ascending"},
	}},
}

// name identifies a pull request among others.
func name(r client.Review) string { return pullRequest(r.RepoOwner, r.RepoName, r.PrNumber) }
