package apiserver

import (
	"bytes"
	"context"
	"maps"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/console"
	"github.com/appsec-dev/findings-operator/apiserver/console/api"
)

// addExport serves the download of an export. One that fails is answered with a page.
func (r *router) addExport(engine *gin.Engine) {
	operation := inside(engine)
	r.addPassed(engine, "export", "/v2/finding-export", func(c *gin.Context, request *http.Request) {
		answer := &refusable{ResponseWriter: c.Writer, header: http.Header{}}
		operation.ServeHTTP(answer, request)
		if answer.refused != 0 {
			err := api.FailureOf(answer.refused, answer.header, answer.body.Bytes())
			sendAnswer(c, r.console.Failed(c.Request, stateOf(c).requestID, err))
		}
	})
}

// addEvents serves the stream of changes to the modules of pages.
func (r *router) addEvents(engine *gin.Engine) {
	operation := inside(engine)
	r.addPassed(engine, "events", "/v2/events", func(c *gin.Context, request *http.Request) {
		stateOf(c).lasting = true
		goOnAfter(request)
		operation.ServeHTTP(c.Writer, request)
	})
}

// addPassed serves an operation that a browser requests directly, with the session's key. Its answer is not buffered on
// the way, and ends with the session.
func (r *router) addPassed(engine *gin.Engine, name, to string, serve func(c *gin.Context, request *http.Request)) {
	at := console.Path + name
	r.templates[at] = at
	engine.GET(at, r.refuse, r.refuseOtherOrganization, func(c *gin.Context) {
		ctx, cancel := context.WithDeadline(c.Request.Context(), r.console.SessionEnds(c.Request))
		defer cancel()
		request := c.Request.Clone(ctx)
		request.URL.Path, request.URL.RawPath = to, ""
		request.Header.Set("Authorization", "Bearer "+r.console.APIKey(c.Request))
		request.Header.Set(requestIDHeader, stateOf(c).requestID)
		serve(c, request)
	})
}

// refusable passes an answer on, but keeps one of 400 or more for a page that explains it.
type refusable struct {
	http.ResponseWriter
	// header is that of the answer, until it is passed on.
	header http.Header
	// passed is set once the answer is passed on; refused is the status of one that is kept, else 0.
	passed  bool
	refused int
	body    bytes.Buffer
}

func (a *refusable) Header() http.Header {
	if a.passed {
		return a.ResponseWriter.Header()
	}
	return a.header
}

func (a *refusable) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		a.refused = status
		return
	}
	maps.Copy(a.ResponseWriter.Header(), a.header)
	a.passed = true
	a.ResponseWriter.WriteHeader(status)
}

func (a *refusable) Write(part []byte) (int, error) {
	if a.refused != 0 {
		return a.body.Write(part)
	}
	if !a.passed {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(part)
}

// Flush is for a body that is sent while it is produced.
func (a *refusable) Flush() {
	if a.passed {
		_ = http.NewResponseController(a.ResponseWriter).Flush()
	}
}

// Unwrap is for http.ResponseController.
func (a *refusable) Unwrap() http.ResponseWriter { return a.ResponseWriter }
