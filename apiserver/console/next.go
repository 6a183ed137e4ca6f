package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/session"
)

// isCookieLost reports whether the login has led to the page, but the browser sends no cookie: it has not kept it, or
// the page was loaded again after the end of the session.
func isCookieLost(r *http.Request) bool {
	from, err := url.Parse(r.Referer())
	return err == nil && from.Path == loginPath && len(r.CookiesNamed(session.CookieName)) == 0
}

// login returns the address of the login that leads back to the page, or to the one that a failed login was to lead to.
func (c *Console) login(r *http.Request) string {
	next := c.next(r)
	if r.URL.Path == loginPath {
		next = r.URL.Query().Get("next")
	}
	if len(next) > page.MaxAddress {
		next = Path
	}
	return loginPath + "?next=" + url.QueryEscape(next)
}

// next returns where to go after the login: the requested page. After a change it is the page of the form, and after a
// request for anything else, such as a download, which leaves a browser at the login, the page with the link. Of a long
// address, a browser sends only the origin as Referer. Most forms are sent to the address of a page, which shows them
// or continues with them.
func (c *Console) next(r *http.Request) string {
	isPage := c.isPage(r.URL.EscapedPath())
	if isPage && r.Method == http.MethodGet {
		return r.URL.RequestURI()
	}
	from, err := url.Parse(r.Referer())
	if err == nil && strings.HasPrefix(from.Path, Path) && from.Path != loginPath {
		return from.RequestURI()
	}
	if isPage {
		return r.URL.RequestURI()
	}
	return Path
}

// isPage reports whether the path is that of a page, and not only the target of a form.
func (c *Console) isPage(path string) bool {
	matches := func(of, segment string) bool { return of == segment || strings.HasPrefix(of, ":") }
	return slices.ContainsFunc(c.Routes(), func(route page.Route) bool {
		of := strings.Split(Path+route.Path, "/")
		return route.Method == http.MethodGet && slices.EqualFunc(of, strings.Split(path, "/"), matches)
	})
}
