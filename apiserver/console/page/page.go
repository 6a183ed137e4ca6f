// Package page holds what the console's pages have in common: the request for a page, and its response.
package page

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/client"
)

// Route is a page, or the target of a page's form.
type Route struct {
	Method string
	// Path below /console/, in Gin's syntax.
	Path  string
	Serve Handle
	// Public pages are served without a session.
	Public bool
}

// Handle serves a page. An error that is an *api.Failure is shown to the user; any other is shown as an internal error.
type Handle func(ctx context.Context, v *Visit) (Response, error)

// Visit is a browser's request to a Route.
type Visit struct {
	// API calls the operations with the session's key.
	API *api.Client
	// Who is the owner of the session's key; empty on public pages.
	Who client.WhoAmI
	// Path returns a segment of the path.
	Path func(name string) string
	// URL is the requested address.
	URL *url.URL
	// Query and Form are the parameters of the address and of the body.
	Query, Form url.Values
	// Token is the value that forms must send back.
	Token string
	// Place is a position in the stream of events that is not later than the page's data; empty if a module asks, if
	// the key may not follow events, or if the service did not return the position.
	Place string
	// Scripted means that a module of the console makes the request, not the browser: it expects a fragment of the page.
	Scripted bool
	// LogIn checks an API key and returns the cookie of its session.
	LogIn func(ctx context.Context, apiKey string) (*http.Cookie, error)
}

// Response is the response of a page: one of Body, JSON and Location.
type Response struct {
	// Status of the response; 0: 200.
	Status int
	// Title of the page, in the browser's title bar.
	Title string
	// Body of the page. The console adds its frame around it, unless a module asks.
	Body templ.Component
	// Styles and Modules are the page's own assets, for example "findings/findings.css".
	Styles, Modules []string
	// JSON is the response to a module.
	JSON any
	// Location is the redirect's target, below /console/.
	Location string
	// Cookie to set, if any.
	Cookie *http.Cookie
}

// MaxAddress is the length in bytes of the longest address to which a draft or the login redirects. The login's own
// address escapes it once more, and proxies accept only a few kB of headers.
const MaxAddress = 2 << 10

// SeeOther redirects the browser to another page.
func SeeOther(location string) Response {
	return Response{Status: http.StatusSeeOther, Location: location}
}

// May reports whether the session's key has the scope.
func (v *Visit) May(scope string) bool { return slices.Contains(v.Who.Scopes, scope) }

// DataAge returns how old the data on the page may be, in seconds; 0 if it is not older than usual.
func (v *Visit) DataAge() int {
	if v.API == nil {
		return 0
	}
	return v.API.DataAge()
}

// Resource returns the path of the resource that the page's path names, in a list of the console or of the REST API.
func (v *Visit) Resource(list string) string { return Of(list, v.Path("id")) }

// Of returns the path of a resource in a list of the console or of the REST API.
func Of(list, id string) string { return list + "/" + url.PathEscape(id) }

// Given returns the parameters of these names that have a value, without surrounding spaces, which pasted names often
// have. An empty form field is not a filter.
func Given(query url.Values, names ...string) url.Values {
	given := url.Values{}
	for _, name := range names {
		if value := strings.TrimSpace(query.Get(name)); value != "" {
			given.Set(name, value)
		}
	}
	return given
}

// View returns the parameters of these names that the address of a list has, and refuses others.
func (v *Visit) View(names ...string) (url.Values, error) {
	known := func(name string) bool { return name == "cursor" || slices.Contains(names, name) }
	return Given(v.Query, names...), Check(v.Query, known)
}

// Check refuses an address with unknown or repeated parameters: a misspelt filter would show more than was intended,
// and a repeated one less.
func Check(query url.Values, known func(name string) bool) error {
	for name, values := range query {
		switch {
		case !known(name):
			return api.Failed(http.StatusBadRequest, fmt.Sprintf("There is no filter %q.", name))
		case len(values) > 1:
			return api.Failed(http.StatusBadRequest, fmt.Sprintf("%q is given more than once.", name))
		}
	}
	return nil
}

// Address returns the address of a page with the parameters of a view, changed by pairs of name and value: an empty
// value removes a parameter.
func Address(path string, view url.Values, pairs ...string) string {
	query := maps.Clone(view)
	if query == nil {
		query = url.Values{}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			query.Del(pairs[i])
		} else {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// listRows is the number of rows per page of a list.
const listRows = "50"

// List requests a page of the list at a path of the REST API, and reads it into the given value. The view selects the
// rows, and the cursor in the page's address the page.
func (v *Visit) List(ctx context.Context, path string, view url.Values, into any) error {
	asked := Given(v.Query, "cursor")
	asked.Set("size", listRows)
	maps.Copy(asked, view)
	_, err := v.API.Get(ctx, path, asked, into)
	return err
}

// ListUnfiltered is List for lists that have no filters: it refuses an address with any.
func (v *Visit) ListUnfiltered(ctx context.Context, path string, into any) error {
	view, err := v.View()
	if err != nil {
		return err
	}
	return v.List(ctx, path, view, into)
}

// Text renders a part of a page for a module's JSON.
func Text(ctx context.Context, part templ.Component) (string, error) {
	var out strings.Builder
	err := part.Render(ctx, &out)
	return out.String(), err
}

// Today returns the first day, in UTC, that can be chosen as the last day of something.
func Today() string { return time.Now().UTC().Format(time.DateOnly) }

// lines replaces all line ends that browsers normalise.
var lines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// Lines returns the text of a form with the line ends of the service, because browsers normalise them.
func Lines(text string) string { return lines.Replace(text) }

// EndOf returns the expiry for the value of a form. A day ends with its last second, in UTC.
func EndOf(given string) string {
	if _, err := time.Parse(time.DateOnly, given); err == nil {
		return given + "T23:59:59Z"
	}
	return given
}
