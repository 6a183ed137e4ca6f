// Package scans holds the pages of scans: what was imported, what was refused, and how to fix it.
package scans

import (
	"context"
	"embed"
	"net/http"
	"net/url"
	"slices"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// Files are the pages' style sheets.
//
//go:embed *.css
var Files embed.FS

const (
	listPath = "/console/scans"
	apiPath  = "/v2/scans"
)

var (
	styles  = []string{"scans/scans.css"}
	modules = []string{"ui/follow.js"}
)

// Routes returns the pages.
func Routes() []page.Route {
	return []page.Route{
		{Method: http.MethodGet, Path: "scans", Serve: list},
		{Method: http.MethodGet, Path: "scans/:id", Serve: show},
	}
}

// listing is the content of the list.
type listing struct {
	client.ScanList
	view url.Values
}

func list(ctx context.Context, v *page.Visit) (page.Response, error) {
	view, err := v.View("status", "repo_id", "project_id", "upload_id", "order")
	if err != nil {
		return page.Response{}, err
	}
	l := listing{view: view}
	if err := v.List(ctx, apiPath, l.view, &l.ScanList); err != nil {
		return page.Response{}, err
	}
	return page.Response{Title: "Scans", Body: listPage(l), Styles: styles, Modules: modules}, nil
}

// running reports whether a scan of the page is still running.
func (l listing) running() bool { return slices.ContainsFunc(l.Items, running) }

// filters of the list.
var filters = []ui.Filter{
	{Name: "status", Label: "State", Any: "any", Options: []ui.Option{
		{Value: "running", Word: "running"}, {Value: "completed", Word: "completed"},
		{Value: "failed", Word: "failed"},
	}},
	{Name: "repo_id", Label: "Repository"},
	{Name: "project_id", Label: "Project"},
	{Name: "upload_id", Label: "Upload"},
	ui.NewestFirst,
}

// show serves the page of a scan.
func show(ctx context.Context, v *page.Visit) (page.Response, error) {
	var s client.Scan
	if _, err := v.API.Get(ctx, v.Resource(apiPath), nil, &s); err != nil {
		return page.Response{}, err
	}
	return page.Response{Title: title(s), Body: scanPage(s), Styles: styles, Modules: modules}, nil
}

// of returns the address of the list of scans that share a value.
func of(pairs ...string) string { return page.Address(listPath, nil, pairs...) }
