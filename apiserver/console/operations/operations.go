// Package operations holds the pages of decisions about many findings: previewed, carried out, undone.
package operations

import (
	"context"
	"embed"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/apiserver/console/findings"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
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
		{Method: http.MethodGet, Path: "operations/_new", Serve: showFindingsList},
		{Method: http.MethodPost, Path: "operations/_new", Serve: create},
		{Method: http.MethodGet, Path: "operations/:id", Serve: show},
		{Method: http.MethodGet, Path: "operations/:id/findings", Serve: showFindings},
		{Method: http.MethodPost, Path: "operations/:id/commit", Serve: commit},
		{Method: http.MethodPost, Path: "operations/:id/undo", Serve: undo},
	}
}

// list shows the organization's operations, the newest first.
func list(ctx context.Context, v *page.Visit) (page.Response, error) {
	var found client.TriageOperationList
	if err := v.ListUnfiltered(ctx, apiPath, &found); err != nil {
		return page.Response{}, err
	}
	undone, err := readUndone(ctx, v, found.Items...)
	if err != nil {
		return page.Response{}, err
	}
	undos, err := readUndos(ctx, v, found.Items...)
	if err != nil {
		return page.Response{}, err
	}
	body := listPage(found, undone, undos)
	return page.Response{Title: "Operations", Body: body, Styles: styles, Modules: modules}, nil
}

// operations maps ids to operations.
type operations map[string]client.TriageOperation

// readUndone reads the operations that these undo. Deleted ones are left out.
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
		_, err := v.API.Get(ctx, page.Of(apiPath, o.Undo), nil, &before)
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

const (
	// undosAsked bounds how many pages of undos are read.
	undosAsked = 10
	// maxAsked bounds the ids that one request may have, with their commas.
	maxAsked = 16_000
)

// readUndos reads the operations that undo these, and the operations that undo those in turn.
func readUndos(ctx context.Context, v *page.Visit, of ...client.TriageOperation) ([]client.TriageOperation, error) {
	var all []client.TriageOperation
	var waiting []string
	known := map[string]bool{}
	wait := func(found []client.TriageOperation) {
		for _, o := range found {
			if !known[o.Id] {
				known[o.Id] = true
				waiting = append(waiting, o.Id)
			}
		}
	}
	wait(of)
	query := url.Values{"size": {"100"}}
	for i := 0; i < undosAsked && (len(waiting) > 0 || query.Has("cursor")); i++ {
		if !query.Has("cursor") {
			var ids string
			ids, waiting = firstIDs(waiting)
			query.Set("undo", ids)
		}
		var undos client.TriageOperationList
		if _, err := v.API.Get(ctx, apiPath, query, &undos); err != nil {
			return nil, err
		}
		all = append(all, undos.Items...)
		wait(undos.Items)
		query.Del("cursor")
		if undos.HasMore {
			query.Set("cursor", undos.NextCursor)
		}
	}
	return all, nil
}

// firstIDs joins as many ids as one request may have, and returns the rest.
func firstIDs(ids []string) (first string, rest []string) {
	n, length := 0, 0
	for n < len(ids) && length+len(ids[n]) < maxAsked {
		length += len(ids[n]) + 1
		n++
	}
	return strings.Join(ids[:n], ","), ids[n:]
}

// show serves the page of an operation: what it would do, is doing, or has done.
func show(ctx context.Context, v *page.Visit) (page.Response, error) {
	var operation client.TriageOperation
	if _, err := v.API.Get(ctx, v.Resource(apiPath), nil, &operation); err != nil {
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
	undos, err := readUndos(ctx, v, operation)
	if err != nil {
		return page.Response{}, err
	}
	title := titleOf(operation, undone)
	body := operationPage(operation, undoingOf(operation.Id, undos), title, samples, v.Token, v.May("findings:triage"))
	return page.Response{Title: title, Body: body, Styles: styles, Modules: modules}, nil
}

// set is the decision about each finding. Empty form fields change nothing.
type set struct {
	UserStatus string `json:"user_status"`
	Reason     string `json:"reason,omitempty"`
	ExpiresAt  string `json:"expires_at,omitempty"`
	Comments   string `json:"comments,omitempty"`
}

// request is the request to the REST API.
type request struct {
	IDs     []string          `json:"ids,omitempty"`
	Filters map[string]string `json:"filters,omitempty"`
	Set     *set              `json:"set,omitempty"`
	Undo    string            `json:"undo,omitempty"`
}

// requestOf reads the form of the list: the selected findings, or the filters if all matches are selected.
func requestOf(form url.Values) request {
	r := request{Set: &set{UserStatus: form.Get("user_status"), Comments: page.Lines(form.Get("comments"))}}
	if r.Set.UserStatus != decision.Open {
		r.Set.Reason, r.Set.ExpiresAt = form.Get("reason"), page.EndOf(form.Get("until"))
	}
	if form.Get("all") != "true" {
		r.IDs = form["id"]
		return r
	}
	r.Filters = findings.FiltersOf(form)
	return r
}

// showFindingsList redirects to the list of findings whose form was sent to the address. After a refused form the
// browser is at this address; a reload or a login requests it with GET.
func showFindingsList(_ context.Context, v *page.Visit) (page.Response, error) {
	return page.SeeOther(page.Address("/console/findings", v.Query)), nil
}

// selection returns the fields of the form that select findings.
func selection(form url.Values) url.Values {
	selects := url.Values{}
	for name, values := range form {
		if name == "id" || name == "all" || strings.HasPrefix(name, findings.FilterPrefix) {
			selects[name] = values
		}
	}
	return selects
}

// create creates a preview, or shows the form again with the errors. Nothing is decided yet.
func create(ctx context.Context, v *page.Visit) (page.Response, error) {
	r := requestOf(v.Form)
	if len(r.IDs) == 0 && len(r.Filters) == 0 {
		return page.Response{Title: "Nothing is selected", Body: nothing(), Status: http.StatusBadRequest}, nil
	}
	response, err := send(ctx, v, apiPath, r)
	if failure, is := api.Refused(err); is {
		body := draftForm(v.Form, ui.Describe(failure.Body), v.Token, v.Who.RequiresReason)
		return page.Response{Status: failure.Status, Title: "A new operation", Body: body, Styles: styles}, nil
	}
	return response, err
}

// commit carries out the operation, for exactly the findings of its preview. One that was created under the same name
// after the page was loaded is refused.
func commit(ctx context.Context, v *page.Visit) (page.Response, error) {
	uid := v.Form.Get("uid")
	if uid == "" { // the service would commit any operation of the name
		const detail = "The page is older than the service."
		return page.Response{}, api.Failed(http.StatusPreconditionFailed, detail)
	}
	return send(ctx, v, v.Resource(apiPath)+"/commit", client.TriageOperationCommit{Uid: &uid})
}

// undo creates the preview of an operation that restores the decisions before this one.
func undo(ctx context.Context, v *page.Visit) (page.Response, error) {
	return send(ctx, v, apiPath, request{Undo: v.Path("id")})
}

// send requests an operation and shows it. If it has failed, its page explains why.
func send(ctx context.Context, v *page.Visit, path string, body any) (page.Response, error) {
	var operation client.TriageOperation
	if err := v.API.Send(ctx, http.MethodPost, path, "", body, &operation); err != nil {
		if failure, is := errors.AsType[*api.Failure](err); is && failure.Location != "" {
			return page.SeeOther(listPath + strings.TrimPrefix(failure.Location, apiPath)), nil
		}
		return page.Response{}, err
	}
	return page.SeeOther(page.Of(listPath, operation.Id)), nil
}
