// Package ui holds the common appearance of the console's pages: the frame around them, their style tokens, and the
// parts that several pages use.
package ui

import (
	"embed"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/client"
)

// Files are the style sheets and modules of every page.
//
//go:embed *.css *.js *.svg
var Files embed.FS

// View is the content of the frame around a page.
type View struct {
	Title string
	// Who is the owner of the session's key.
	Who client.WhoAmI
	// At is the page's path.
	At string
	// Token is the value that the page's forms must send back.
	Token string
	// Place is the position in the stream of events at which the page was read.
	Place string
	// DataAge is how old what the page shows may be, in seconds.
	DataAge int
	// Styles and Modules are the assets of the page itself.
	Styles, Modules []string
	// Asset returns the address of an asset.
	Asset func(name string) string
}

// minutesOld returns how many minutes old the page may be. Less than one is not worth a warning.
func (v View) minutesOld() int { return v.DataAge / int(time.Minute/time.Second) }

// Problem is the content of an error page.
type Problem struct {
	Status int
	Detail string
	// RetryAt is when to try again; zero if that would not help.
	RetryAt   time.Time
	RequestID string
	// MissingScope reports that the key lacks a scope.
	MissingScope bool
	// Busy reports that too many requests like this one are running.
	Busy bool
	// Change reports that the request was a change, and not the view of a page.
	Change bool
	// Form is the page whose form was sent; empty if there is none.
	Form string
	// Login is the login page that leads back here.
	Login string
}

// Title summarises the error.
func (p Problem) Title() string {
	switch p.Status {
	case http.StatusBadRequest:
		if p.Change {
			return "Not accepted"
		}
		return "This address is not valid"
	case http.StatusForbidden:
		return "Not allowed"
	case http.StatusNotFound:
		return "Not found"
	case http.StatusMethodNotAllowed:
		return "Not possible at this address"
	case http.StatusConflict:
		return "Not accepted"
	case http.StatusPreconditionFailed:
		return "The page is out of date"
	case http.StatusTooManyRequests:
		return "Too many requests"
	}
	return "Something went wrong"
}

// Next explains on a page what to do about it.
func (p Problem) Next() string {
	again := " Wait until the time below, then reload the page."
	if p.Change {
		again = " Wait until the time below, then send the form again from its page."
	}
	return p.next("the request id below", again)
}

// next explains what to do about it. The caller words the request id, and when to try again after too many requests.
func (p Problem) next(requestID, again string) string {
	switch p.Status {
	case http.StatusBadRequest:
		if p.Change {
			return "Nothing was changed. Correct it in the form, and try again."
		}
		return "Go back, or start from a list without filters."
	case http.StatusForbidden:
		return p.forbidden()
	case http.StatusNotFound:
		return "Check the address, or look in the list: what it names may have been removed, or belong to another organization."
	case http.StatusMethodNotAllowed:
		return "Nothing was changed. The page may be of another version of the service: go back, copy what you typed, load the " +
			"page again, then send the form from there."
	case http.StatusConflict:
		return "Nothing was changed. Do what the reason asks, then send the form again from its page."
	case http.StatusPreconditionFailed:
		return "Nothing was changed. Load the page with the form again, look at what it is about now, then decide again."
	case http.StatusTooManyRequests:
		if p.Busy {
			return "Your organization has too many such requests at once." + again
		}
		return limited + again
	}
	if p.Change {
		return "Load the page with the form again to see whether the change was stored. If the problem stays, tell whoever " +
			"runs the service " + requestID + "."
	}
	return "Reload the page. If the problem stays, tell whoever runs the service " + requestID + "."
}

// forbidden explains what to do about a request that is not allowed.
func (p Problem) forbidden() string {
	switch {
	case p.MissingScope:
		return "Ask whoever manages the organization's API keys for a key with that scope, and log in with that."
	case p.Change:
		return "Load the page with the form again, and send the form from there."
	}
	return "Load the page again."
}

// JSON returns the error for modules. Their message has no time and no request id below it.
func (p Problem) JSON() any {
	next := p.next("the request id "+p.RequestID, "")
	if wait := time.Until(p.RetryAt); wait > 0 {
		next += fmt.Sprintf(" Try again in %.0f seconds.", math.Ceil(wait.Seconds()))
	}
	return struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
		Next   string `json:"next"`
	}{p.Title(), p.Detail, next}
}

// limited explains a refusal because of a rate limit.
const limited = "Your API key, or your address, has sent as many requests as it may in a minute."

// link is an entry of the navigation. Scope is what its page requires, and Query the initial view of the page.
type link struct{ Name, Path, Scope, Query string }

// navigation lists the pages.
var navigation = []link{
	{Name: "Overview", Path: "/console/", Scope: findingsRead},
	{Name: "Findings", Path: "/console/findings", Scope: findingsRead, Query: "?status=open"},
	{Name: "Reviews", Path: "/console/reviews", Scope: "reviews:read"},
	{Name: "Scans", Path: "/console/scans", Scope: findingsRead},
	{Name: "Operations", Path: "/console/operations", Scope: findingsRead},
	{Name: "Webhooks", Path: "/console/deliveries", Scope: "webhooks:read"},
	{Name: "Policies", Path: "/console/policies", Scope: findingsRead},
	{Name: "Keys", Path: "/console/keys", Scope: "keys:read"},
}

const findingsRead = "findings:read"

// navigationOf returns the entries whose pages the key may see.
func navigationOf(who client.WhoAmI) []link {
	return slices.DeleteFunc(slices.Clone(navigation), func(l link) bool { return !slices.Contains(who.Scopes, l.Scope) })
}

// Home returns the first page that the key may see.
func Home(who client.WhoAmI) string {
	if links := navigationOf(who); len(links) > 0 {
		return links[0].Path
	}
	return navigation[0].Path
}

// current returns the aria-current value of a link: whether it leads to the page itself, or to a parent of it.
func current(path, at string) string {
	switch {
	case path == at:
		return "page"
	case path != "/console/" && len(at) > len(path) && at[:len(path)+1] == path+"/":
		return "true"
	}
	return "false"
}
