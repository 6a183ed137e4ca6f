package ui

import (
	"slices"

	"github.com/appsec-dev/findings-operator/client"
)

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
