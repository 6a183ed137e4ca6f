// Package ui holds what all pages of the console look like: the frame around them, the tokens of their styles, and the
// parts that more than one of them shows.
package ui

import (
	"embed"
	"net/http"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/client"
)

// Files are the style sheets and modules of every page.
//
//go:embed *.css *.js *.svg
var Files embed.FS

// View is what the frame around a page shows.
type View struct {
	Title string
	// Who the session's key belongs to.
	Who client.WhoAmI
	// At is the page's path.
	At string
	// Token is what the page's forms send back.
	Token string
	// Place in what changes that the page was made at.
	Place string
	// Styles and Modules are those of the page itself.
	Styles, Modules []string
	// Asset returns the address of an asset.
	Asset func(name string) string
}

// Problem is what a page that failed shows.
type Problem struct {
	Status int
	Detail string
	// RetryAt is when to try again; zero where that changes nothing.
	RetryAt   time.Time
	RequestID string
	// Change says that it was something to be changed, and not a page to be seen.
	Change bool
}

// Title says what is wrong.
func (p Problem) Title() string {
	switch p.Status {
	case http.StatusBadRequest:
		if p.Change {
			return "Not accepted"
		}
		return "This address does not work"
	case http.StatusForbidden:
		return "Not allowed"
	case http.StatusNotFound:
		return "Not found"
	case http.StatusConflict, http.StatusPreconditionFailed:
		return "Somebody was faster"
	case http.StatusTooManyRequests:
		return "Too many requests"
	}
	return "Something went wrong"
}

// Next says what to do about it.
func (p Problem) Next() string {
	switch p.Status {
	case http.StatusBadRequest:
		if p.Change {
			return "Nothing was changed. Correct it in the form, and try again."
		}
		return "Go back, or start from a list without filters."
	case http.StatusForbidden:
		return "If a scope is missing, ask whoever manages the organization's API keys for a key that has it, and log " +
			"in with that."
	case http.StatusNotFound:
		return "It may have been removed, or belong to another organization. Look for it in the list."
	case http.StatusConflict, http.StatusPreconditionFailed:
		return "Load the page again to see what was decided, then decide again."
	case http.StatusTooManyRequests:
		return "The requests that your API key, or your address, may send in a minute are used up. Wait until the time below, then load the page again."
	}
	return "Load the page again. If it stays so, tell whoever runs the service the request's name below."
}

// Said is what modules are told.
func (p Problem) Said() any {
	return struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
		Next   string `json:"next"`
	}{p.Title(), p.Detail, p.Next()}
}

// link is one of the navigation. Scope is what its page needs, and Query the view of the page that one begins with.
type link struct{ Name, Path, Scope, Query string }

// navigation leads to the pages.
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

// navigationOf leads to the pages that the key may see.
func navigationOf(who client.WhoAmI) []link {
	return slices.DeleteFunc(slices.Clone(navigation), func(l link) bool { return !slices.Contains(who.Scopes, l.Scope) })
}

// Home is the first page that the key may see.
func Home(who client.WhoAmI) string {
	if links := navigationOf(who); len(links) > 0 {
		return links[0].Path
	}
	return navigation[0].Path
}

// current says of a link that it leads to the page itself, or to what is below it.
func current(path, at string) string {
	switch {
	case path == at:
		return "page"
	case path != "/console/" && len(at) > len(path) && at[:len(path)+1] == path+"/":
		return "true"
	}
	return "false"
}
