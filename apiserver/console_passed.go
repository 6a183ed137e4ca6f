package apiserver

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/console"
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
