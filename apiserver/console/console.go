// Package console serves the web pages in which users triage findings. It is a client of the REST API in the same
// process: everything a page shows or does is an operation of openapi.yaml, called with the user's API key.
package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/session"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// Path is the path of the console.
const Path = session.Path

const loginPath = Path + "login"

// MaxFormBytes bounds the body of a form, which may name as many findings as a page can select.
const MaxFormBytes = 1 << 20

// tokenField and tokenHeader carry the token of forms: the browser's, and the modules'.
const (
	tokenField  = "token"
	tokenHeader = "X-Console-Token"
	// scriptHeader is sent by the console's modules.
	scriptHeader = "X-Console-Fragment"
)

// Console serves pages and assets. Assets need no session.
type Console struct {
	api     http.Handler
	session session.Sealer
	assets  assets
}

// New returns a console whose pages call the operations that handler serves.
func New(handler http.Handler, sealer session.Sealer) (*Console, error) {
	assets, err := readAssets()
	return &Console{handler, sealer, assets}, err
}

// APIKey returns the key of the request's session, or "".
func (c *Console) APIKey(r *http.Request) string { return c.session.APIKey(r, time.Now()) }

// SessionEnds returns when the request's session ends at the latest.
func (c *Console) SessionEnds(r *http.Request) time.Time { return c.session.Ends(r, time.Now()) }

// Missing returns a route whose page reports that the requested page does not exist.
func Missing() page.Route {
	return page.Route{Method: http.MethodGet, Serve: func(context.Context, *page.Visit) (page.Response, error) {
		return page.Response{}, api.Failed(http.StatusNotFound, "The console has no page at this address.")
	}}
}

// Request is the request for a page.
type Request struct {
	HTTP *http.Request
	// RequestID identifies it in logs.
	RequestID string
	// Path returns a segment of the path.
	Path func(name string) string
	// Secure reports that the browser reached the service by TLS.
	Secure bool
}

// Serve returns the response to a request for a page. Unless the page is public, the session's key is known to be
// valid.
func (c *Console) Serve(route page.Route, request Request) Answer {
	r := request.HTTP
	visit, err := c.visit(route, request)
	if err != nil {
		return c.Failed(r, request.RequestID, err)
	}
	response, err := route.Serve(r.Context(), visit)
	if err != nil {
		return c.failed(r, visit, request.RequestID, err)
	}
	answer, err := c.render(r.Context(), visit, response)
	if err != nil {
		return c.failed(r, visit, request.RequestID, err)
	}
	answer.setDataAge(visit.DataAge())
	return answer
}

func (c *Console) visit(route page.Route, request Request) (*page.Visit, error) {
	r := request.HTTP
	if err := c.checkKey(r); err != nil {
		return nil, err
	}
	if err := c.checkOrigin(route, r); err != nil {
		return nil, err
	}
	query, err := Query(r)
	if err != nil {
		return nil, err
	}
	v := &page.Visit{
		API: api.New(c.api, c.APIKey(r), request.RequestID), Path: request.Path, URL: r.URL, Query: query,
		Form: r.PostForm, Scripted: scripted(r), Token: c.session.Token(r, time.Now()),
	}
	v.LogIn = func(ctx context.Context, apiKey string) (*http.Cookie, error) {
		if err := whoAmI(ctx, api.New(c.api, apiKey, request.RequestID), &v.Who); err != nil {
			return nil, err
		}
		return c.session.Cookie(apiKey, request.Secure, time.Now()), nil
	}
	if route.Public {
		return v, nil
	}
	if err := whoAmI(r.Context(), v.API, &v.Who); err != nil {
		return nil, err
	}
	if !v.Scripted && slices.ContainsFunc(eventScopes, v.May) {
		// The position is read before the page's data, so that no later change is missed.
		v.Place, _ = v.API.Place(r.Context())
	}
	return v, nil
}

// eventScopes are the scopes that allow some events. A request for events with none of them would be recorded as a
// refusal of the key.
var eventScopes = []string{"findings:read", "reviews:read", "webhooks:read"}

// Query returns the parameters of the address. It refuses a malformed one, which would select more than intended
// without its malformed filters.
func Query(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		const detail = "The address is damaged: it has a semicolon, or a percent sign that encodes nothing."
		return nil, api.Failed(http.StatusBadRequest, detail)
	}
	return query, nil
}

func whoAmI(ctx context.Context, api *api.Client, into *client.WhoAmI) error {
	_, err := api.Get(ctx, "/v2/whoami", nil, into)
	return err
}

// crossOrigin refuses requests that another site makes a browser send.
var crossOrigin = http.NewCrossOriginProtection()

// checkOrigin refuses a change that was not requested by a page of the console, and parses its form. The modules' token
// is known to hold.
func (c *Console) checkOrigin(route page.Route, r *http.Request) error {
	if r.Method != http.MethodPost {
		return nil
	}
	if err := crossOrigin.Check(r); err != nil {
		return api.Failed(http.StatusForbidden, "The request came from another site, so nothing was changed.")
	}
	if err := r.ParseForm(); err != nil {
		return api.Failed(http.StatusBadRequest, "The form could not be read.")
	}
	if route.Public || r.Header.Get(tokenHeader) != "" {
		return nil
	}
	if !c.session.Holds(r, r.PostForm.Get(tokenField), time.Now()) {
		return api.Failed(http.StatusForbidden, "The page is older than your session, so nothing was changed.")
	}
	return nil
}

// checkKey refuses to give a page parts that another key may see: the user has logged in with that key in another tab,
// perhaps for another organization.
func (c *Console) checkKey(r *http.Request) error {
	if given := r.Header.Get(tokenHeader); given != "" && !c.session.Holds(r, given, time.Now()) {
		return api.Failed(http.StatusForbidden, "You have logged in with another key since this page was loaded.")
	}
	return nil
}

func scripted(r *http.Request) bool { return r.Header.Get(scriptHeader) != "" }

// Failed returns a page that explains the error and what to do next. Without a session it is the login page.
func (c *Console) Failed(r *http.Request, requestID string, err error) Answer {
	return c.failed(r, &page.Visit{URL: r.URL, Scripted: scripted(r)}, requestID, err)
}

// codeMissingScope is the code of a failure that the page explains in words of its own.
const codeMissingScope = "missing_scope"

func (c *Console) failed(r *http.Request, v *page.Visit, requestID string, err error) Answer {
	var failure *api.Failure
	var cause error
	if !errors.As(err, &failure) {
		failure, cause = api.Failed(http.StatusInternalServerError, ""), err
	}
	login := c.login(r)
	if failure.Status == http.StatusUnauthorized && !v.Scripted {
		switch {
		case r.Method == http.MethodPost:
			login += "&unchanged="
		case isCookieLost(r):
			login += "&lost="
		}
		return redirect(login)
	}
	problem := ui.Problem{
		Status: failure.Status, Detail: ui.Describe(failure.Body), RetryAt: failure.RetryAt, RequestID: requestID,
		MissingScope: failure.Body.Code == codeMissingScope, Busy: api.IsBusy(err),
		Change: r.Method == http.MethodPost, Login: login,
	}
	if problem.Change {
		problem.Form = c.next(r)
	}
	shown := page.Response{Status: failure.Status, Title: problem.Title(), Body: ui.ProblemPage(problem)}
	if v.Scripted {
		shown.JSON = problem.JSON()
	}
	answer, err := c.render(r.Context(), v, shown)
	if err != nil {
		return Answer{Status: http.StatusInternalServerError, Header: http.Header{}, Err: errors.Join(cause, err)}
	}
	answer.setDataAge(max(failure.DataAge, v.DataAge()))
	answer.Err = cause
	return answer
}
