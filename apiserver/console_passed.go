package apiserver

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/console"
	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// exportKey holds a browser's request for an export, in the request that is made for it.
type exportKey struct{}

// addExport serves the download of an export. As for a page, the session identifies it, and a failure is answered with
// a page.
func (r *router) addExport(engine *gin.Engine) {
	operation := inside(engine)
	r.addPassed(engine, "export", "/v2/finding-export", func(c *gin.Context, request *http.Request) {
		ctx := context.WithValue(request.Context(), exportKey{}, c.Request)
		operation.ServeHTTP(c.Writer, request.WithContext(ctx))
	})
}

// addEvents serves the stream of changes to the modules of pages, with the session's key.
func (r *router) addEvents(engine *gin.Engine) {
	operation := inside(engine)
	r.addPassed(engine, "events", "/v2/events", func(c *gin.Context, request *http.Request) {
		stateOf(c).lasting = true
		request.Header.Set("Authorization", "Bearer "+r.console.APIKey(c.Request))
		goOnAfter(request)
		operation.ServeHTTP(c.Writer, request)
	})
}

// addPassed serves an operation that a browser requests directly. Its response is not buffered on the way, and ends
// with the session.
func (r *router) addPassed(engine *gin.Engine, name, to string, serve func(c *gin.Context, request *http.Request)) {
	at := console.Path + name
	r.templates[at] = at
	engine.GET(at, r.refuse, r.refuseOtherOrganization, func(c *gin.Context) {
		ctx, cancel := context.WithDeadline(c.Request.Context(), r.console.SessionEnds(c.Request))
		defer cancel()
		request := c.Request.Clone(ctx)
		request.URL.Path, request.URL.RawPath = to, ""
		request.Header.Set(requestIDHeader, stateOf(c).requestID)
		serve(c, request)
	})
}

// refuseOtherOrganization refuses a link or a stream from a page that was loaded before a login to another
// organization. It removes the name of the organization, which is not a parameter of the operation, and refuses a
// malformed address.
func (r *router) refuseOtherOrganization(c *gin.Context) {
	const name = "organization"
	query, err := console.Query(c.Request)
	if err == nil && !query.Has(name) {
		return
	}
	if err == nil && query.Get(name) != stateOf(c).identity.Organization {
		const detail = "You have logged in to another organization since the page with this link was loaded."
		err = api.Failed(http.StatusForbidden, detail)
	}
	if err != nil {
		sendAnswer(c, r.console.Failed(c.Request, stateOf(c).requestID, err))
		c.Abort()
		return
	}
	query.Del(name)
	c.Request.URL.RawQuery = query.Encode()
}

// goOnAfter makes a stream resume after the position in the query, because a browser's EventSource cannot send a header
// on its first request. On a reconnect the browser sends the header itself; that position is later and takes
// precedence.
func goOnAfter(request *http.Request) {
	query := request.URL.Query()
	if request.Header.Get(openapi.HeaderLastEventID) == "" && query.Has("after") {
		request.Header.Set(openapi.HeaderLastEventID, query.Get("after"))
	}
	query.Del("after")
	request.URL.RawQuery = query.Encode()
}
