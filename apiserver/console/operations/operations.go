// Package operations holds the pages of decisions about many findings: previewed, carried out, undone.
package operations

import (
	"context"
	"embed"
	"net/http"
	"net/url"
	"strings"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
)

// Files are the pages' style sheets.
//
//go:embed *.css
var Files embed.FS

const (
	listPath = "/console/operations"
	apiPath  = "/v2/triage-operations"
)

var (
	styles  = []string{"operations/operations.css"}
	modules = []string{"ui/follow.js"}
)

// Routes returns the pages.
func Routes() []page.Route {
	return []page.Route{
		{Method: http.MethodGet, Path: "operations", Serve: list},
		{Method: http.MethodPost, Path: "operations", Serve: create},
		{Method: http.MethodGet, Path: "operations/:id", Serve: show},
		{Method: http.MethodPost, Path: "operations/:id/commit", Serve: commit},
		{Method: http.MethodPost, Path: "operations/:id/undo", Serve: undo},
	}
}

// list shows the organization's operations, the newest first.
func list(ctx context.Context, v *page.Visit) (page.Response, error) {
	var found client.TriageOperationList
	if err := v.List(ctx, apiPath, nil, &found); err != nil {
		return page.Response{}, err
	}
	undone, err := readUndone(ctx, v, found.Items...)
	body := listPage(found, undone)
	return page.Response{Title: "Operations", Body: body, Styles: styles, Modules: modules}, err
}

// operations by their ids.
type operations map[string]client.TriageOperation

// readUndone reads the operations that these undo. One that does not exist any more is left out.
func readUndone(ctx context.Context, v *page.Visit, all ...client.TriageOperation) (operations, error) {
	undone := operations{}
	for _, o := range all {
		undone[o.Id] = o
	}
	for _, o := range all {
		if _, known := undone[o.Undo]; known || o.Undo == "" {
			continue
		}
		var before client.TriageOperation
		_, err := v.API.Get(ctx, apiPath+"/"+url.PathEscape(o.Undo), nil, &before)
		if api.Is(err, http.StatusNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		undone[o.Undo] = before
	}
	return undone, nil
}

// show is the page of an operation: what it would do, does, or has done.
func show(ctx context.Context, v *page.Visit) (page.Response, error) {
	var operation client.TriageOperation
	if _, err := v.API.Get(ctx, address(v), nil, &operation); err != nil {
		return page.Response{}, err
	}
	samples, err := v.Samples(ctx, operation.Samples)
	if err != nil {
		return page.Response{}, err
	}
	undone, err := readUndone(ctx, v, operation)
	if err != nil {
		return page.Response{}, err
	}
	var newest client.TriageOperationList // an undo is made soon, so it is among these
	if err := v.List(ctx, apiPath, nil, &newest); err != nil {
		return page.Response{}, err
	}
	title := titleOf(operation, undone)
	undoing := undoingOf(operation.Id, newest.Items)
	body := operationPage(operation, undoing, title, samples, v.Token, v.May("findings:triage"))
	return page.Response{Title: title, Body: body, Styles: styles, Modules: modules}, nil
}

func address(v *page.Visit) string { return apiPath + "/" + url.PathEscape(v.Path("id")) }

// set is what is decided about each finding. A field that a form leaves empty changes nothing.
type set struct {
	UserStatus string `json:"user_status"`
	Reason     string `json:"reason,omitempty"`
	ExpiresAt  string `json:"expires_at,omitempty"`
	Comments   string `json:"comments,omitempty"`
}

// request is what the REST API is asked for.
type request struct {
	IDs     []string          `json:"ids,omitempty"`
	Filters map[string]string `json:"filters,omitempty"`
	Set     *set              `json:"set,omitempty"`
	Undo    string            `json:"undo,omitempty"`
}

// requestOf reads the form of the list: the findings that were selected, or all that its filters match.
func requestOf(form url.Values) request {
	r := request{Set: &set{
		UserStatus: form.Get("user_status"), Reason: form.Get("reason"), Comments: form.Get("comments"),
		ExpiresAt: page.EndOf(form.Get("until")),
	}}
	if form.Get("all") != "true" {
		r.IDs = form["id"]
		return r
	}
	r.Filters = map[string]string{}
	for name := range form {
		if filter, ok := strings.CutPrefix(name, "filter."); ok {
			r.Filters[filter] = form.Get(name)
		}
	}
	return r
}

// create makes a preview. Nothing is decided yet.
func create(ctx context.Context, v *page.Visit) (page.Response, error) {
	r := requestOf(v.Form)
	if len(r.IDs) == 0 && len(r.Filters) == 0 {
		return page.Response{Title: "Nothing is selected", Body: nothing(), Status: http.StatusBadRequest}, nil
	}
	return send(ctx, v, apiPath, r)
}

// commit carries the operation out, about the findings of its preview and no other.
func commit(ctx context.Context, v *page.Visit) (page.Response, error) {
	return send(ctx, v, address(v)+"/commit", struct{}{})
}

// undo makes the preview of an operation that puts back what was before this one.
func undo(ctx context.Context, v *page.Visit) (page.Response, error) {
	return send(ctx, v, apiPath, request{Undo: v.Path("id")})
}

// send asks for an operation and shows it.
func send(ctx context.Context, v *page.Visit, path string, body any) (page.Response, error) {
	var operation client.TriageOperation
	if err := v.API.Send(ctx, http.MethodPost, path, "", body, &operation); err != nil {
		return page.Response{}, err
	}
	return page.SeeOther(listPath + "/" + url.PathEscape(operation.Id)), nil
}
