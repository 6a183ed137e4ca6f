package apiserver

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/console"
	"github.com/appsec-dev/findings-operator/apiserver/etag"
	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// state is shared by the middlewares of a request.
type state struct {
	requestID string
	identity  auth.Identity
	authErr   error
	request   handlers.Request
	err       *problem.Problem
	// console answers a browser's request; nil for requests of API clients.
	console *console.Console
	// authenticate identifies the sender again, as of now.
	authenticate func() (auth.Identity, error)
	// needed are the scopes that the operation requires.
	needed []v1alpha1.Scope
	// lasting is set for streams, whose duration does not reflect the service's speed.
	lasting bool
	// panicked is set if the handler panicked, which is an error of the server even if the client has left.
	panicked bool
}

const stateKey = "findings.state"

func stateOf(c *gin.Context) *state { return c.MustGet(stateKey).(*state) }

// recovery answers a panic like any other internal error.
func recovery(c *gin.Context) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		// The code that aborted has recorded the cause, perhaps in the log line of an inner request.
		if cause != http.ErrAbortHandler { //nolint:errorlint // as below
			stateOf(c).panicked = true
			stateOf(c).err = problem.Internal("", fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		}
		if c.Writer.Written() || cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so too
			// A partial response must not look complete.
			panic(http.ErrAbortHandler)
		}
		fail(c, problem.Internal("the request could not be answered", stateOf(c).err))
	}()
	c.Next()
}

// validate checks the request against the contract.
func (r *router) validate(described *openapi.Operation, segments map[string]string) gin.HandlerFunc {
	return func(c *gin.Context) {
		s := stateOf(c)
		s.request.ID, s.request.Identity = s.requestID, s.identity
		s.request.Require = func(scope v1alpha1.Scope) error {
			return r.lacking(s.request.Identity, []v1alpha1.Scope{scope})
		}
		if likeGitHub(described.Path) {
			s.request.Origin = origin(c.Request)
		}
		err := readParameters(c, described, segments)
		if err == nil && described.TakesBody() {
			err = r.takeBody(c, described)
		}
		if err != nil {
			fail(c, err)
		}
	}
}

// readParameters reads what the operation takes from the path, the query and the headers.
func readParameters(c *gin.Context, described *openapi.Operation, segments map[string]string) (err error) {
	request := &stateOf(c).request
	path := make(map[string]string, len(segments))
	for parameter, name := range segments {
		path[name] = c.Param(parameter)
	}
	if request.Path, err = described.ParsePath(path); err != nil {
		return invalidPath(described, err)
	}
	if request.Query, err = described.ParseQuery(c.Request.URL.RawQuery); err != nil {
		return named(problem.InvalidQuery, err)
	}
	switch condition := etag.IfMatch(c.Request.Header.Values(openapi.HeaderIfMatch)); {
	case described.Takes(openapi.HeaderIfMatch):
		request.IfMatch = condition
	case condition.Given() && c.Request.Method == http.MethodPatch:
		return named(problem.InvalidBody, &openapi.InvalidError{
			Field: openapi.HeaderIfMatch, Code: problem.CodeInvalid, Text: "this resource has no entity tag: leave the header out",
		})
	}
	if described.Takes(openapi.HeaderLastEventID) {
		request.LastEventID = c.GetHeader(openapi.HeaderLastEventID)
	}
	return nil
}

// invalidPath returns the 400 message that fits the operation: an operation without a body cannot have an
// invalid one.
func invalidPath(described *openapi.Operation, err error) error {
	if described.TakesBody() {
		return named(problem.InvalidBody, err)
	}
	return named(problem.InvalidQuery, err)
}

// named returns a problem of the given kind with the field and code of the error.
func named(kind func(detail string) *problem.Problem, err error) error {
	p := kind(err.Error())
	if invalid, is := errors.AsType[*openapi.InvalidError](err); is {
		return p.In(invalid.Field).Coded(invalid.Code)
	}
	return p
}

// perform runs the operation and sends its response.
func (r *router) perform(handle handlers.Handle) gin.HandlerFunc {
	return func(c *gin.Context) {
		response, err := handle(c.Request.Context(), stateOf(c).request)
		if err != nil {
			fail(c, err)
			return
		}
		if response.Streamed != nil {
			sendStreamed(c, response.Streamed, func() error {
				_, err := r.readmit(c)
				return err
			})
			return
		}
		if response.Events != nil {
			r.sendEvents(c, response.Events)
			return
		}
		free, err := takeOwnBody(c, response)
		if err != nil {
			fail(c, err)
			return
		}
		defer free()
		if response.Tag == "" {
			if response.Location != "" {
				c.Header("Location", response.Location)
			}
			send(c, cmp.Or(response.Status, http.StatusOK), response.Body...)
			return
		}
		sendState(c, response.Tag, response.Body...)
	}
}
