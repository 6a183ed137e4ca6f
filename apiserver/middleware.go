package apiserver

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/console"
	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/etag"
	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// requestIDHeader identifies a request in responses and logs.
const requestIDHeader = "X-Request-Id"

// usualAge is the age up to which a response does not have api.DataAgeHeader.
const usualAge = 5 * time.Second

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

// observe assigns the request an ID and a span, and logs and counts it once it is answered. It comes before recovery,
// so that it sees the response to a panic.
func (r *router) observe(c *gin.Context) {
	start := time.Now()
	s := &state{requestID: requestID(c.GetHeader(requestIDHeader))}
	if r.ofConsole(c.Request) {
		s.console = r.console
	}
	c.Set(stateKey, s)
	ctx, span := r.tracer.Request(c.Request, methodLabel(c.Request.Method), r.routeOf(c), s.requestID)
	if ctx != c.Request.Context() {
		c.Request = c.Request.WithContext(ctx)
	}
	c.Header(requestIDHeader, s.requestID)
	// Responses are private to the key's owner, and source code in them must never be interpreted as a page.
	header := c.Writer.Header()
	header["Cache-Control"], header["X-Content-Type-Options"] = noStore, noSniff
	// Deferred, so that an aborted response is logged too.
	defer func() {
		took := time.Since(start)
		status := r.outcome(c, s, took)
		tracing.Answered(span, status)
		span.End()
		r.record(c, s, status, took)
	}()
	c.Next()
}

// routeOf returns the contract's name of a route; unmatched for unknown paths.
func (r *router) routeOf(c *gin.Context) string {
	return cmp.Or(r.templates[c.FullPath()], unmatched)
}

// statusClientGone is logged and counted in place of a server error that no client received. Nginx invented it.
const statusClientGone = 499

// maxClientWait is how long a request, unless it is an upload, may take and still count as given up by its client;
// after that the server was too slow. It is less than readTimeout - readHeaderTimeout, because net/http also cancels
// requests at the read deadline of a connection.
const maxClientWait = 10 * time.Second

// outcome returns the status to log and to count: the one that was sent, or statusClientGone if the client left before
// an error of the server. A request often fails because its client gave up, which must not raise an alert. A server
// that stops cancels requests, too.
func (r *router) outcome(c *gin.Context, s *state, took time.Duration) int {
	status := c.Writer.Status()
	if status < http.StatusInternalServerError || !abandoned(c.Request.Context(), s.err) {
		return status
	}
	if s.panicked || took >= maxClientWait && s.request.Stream == nil {
		return status
	}
	select {
	case <-r.leaving:
		return status
	default:
		return statusClientGone
	}
}

// abandoned reports whether a request that ended with this error was canceled by its client. A page cancels its other
// requests after the first error, which may be the cause: a request that fails for a reason of its own is not abandoned
// as long as the page's client waits.
func abandoned(ctx context.Context, err *problem.Problem) bool {
	ended := ctx.Err()
	page, ofPage := ctx.Value(pageKey{}).(context.Context)
	if ofPage && (err == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, context.Cause(ctx))) {
		ended = page.Err()
	}
	return errors.Is(ended, context.Canceled)
}

func (r *router) record(c *gin.Context, s *state, status int, took time.Duration) {
	route := r.templates[c.FullPath()]
	r.metrics.count(route, c.Request.Method, status)
	if !s.lasting {
		r.metrics.observe(route, c.Request.Method, status, took)
	}
	at := level(s.err)
	if status == statusClientGone {
		at = slog.LevelInfo
	}
	r.log.LogAttrs(c.Request.Context(), at, "Request", accessLine(c, s, route, status, took)...)
}

// accessLine omits the query, headers and bodies, because they may contain secrets.
func accessLine(c *gin.Context, s *state, route string, status int, took time.Duration) []slog.Attr {
	line := []slog.Attr{
		slog.String("requestID", s.requestID),
		slog.String("method", shorten(c.Request.Method, maxMethod)),
		slog.String("path", shorten(c.Request.URL.EscapedPath(), maxPath)),
		slog.String("route", route),
		slog.Int("status", status),
		slog.Int("bytes", max(c.Writer.Size(), 0)),
		slog.Duration("took", took),
		slog.String("remote", c.Request.RemoteAddr),
	}
	if id := tracing.ID(c.Request.Context()); id != "" {
		line = append(line, slog.String("traceID", id))
	}
	if s.identity.Organization != "" {
		line = append(line, slog.String("organization", s.identity.Organization), slog.String("key", s.identity.KeyName))
	}
	if status == statusClientGone {
		line = append(line, slog.String("outcome", "the client is gone"))
	}
	if s.err != nil {
		line = append(line, slog.String("error", shorten(s.err.Error(), maxError)))
	}
	return line
}

// The bounds of what one line of the log holds, in bytes. An error may be as long as the stack of a panic.
const (
	maxPath   = 1 << 10
	maxMethod = 32
	maxError  = 16 << 10
)

// shorten bounds a text, so that a client cannot fill the log with one line. It cuts no character in two.
func shorten(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

func level(p *problem.Problem) slog.Level {
	if p != nil && p.Status >= http.StatusInternalServerError {
		return slog.LevelError
	}
	return slog.LevelInfo
}

var validRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// requestID keeps the ID that a proxy gave the request, if it is safe to log.
func requestID(given string) string {
	if validRequestID.MatchString(given) {
		return given
	}
	return uuid.NewString()
}

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

// identify authenticates the request's key. It refuses nothing yet, because requests without a valid key count
// against a rate limit too.
func (r *router) identify(c *gin.Context) {
	s := stateOf(c)
	_, span := tracing.Start(c.Request.Context(), "authenticate")
	defer span.End()
	// With two keys it would be ambiguous who sent the request.
	var header string
	if values := c.Request.Header.Values("Authorization"); len(values) == 1 {
		header = values[0]
	}
	switch {
	case likeGitHub(c.Request.URL.Path):
		header = withBearer(header)
	case s.console != nil:
		header = "Bearer " + s.console.APIKey(c.Request)
	}
	s.authenticate = func() (auth.Identity, error) { return r.auth.Authenticate(header, time.Now()) }
	s.identity, s.authErr = s.authenticate()
}

// refuse rejects requests without a valid key.
func (r *router) refuse(c *gin.Context) {
	s := stateOf(c)
	if err := r.refusal(s.authErr); err != nil {
		fail(c, err)
		return
	}
	r.auth.MarkUsed(s.identity)
	if !r.model.Ready() {
		fail(c, problem.TryAgain("the service is starting", nil))
		return
	}
	if age := r.auth.Age(time.Now()); age > usualAge {
		c.Header(api.DataAgeHeader, strconv.Itoa(int(age.Seconds())))
	}
}

// refusal returns the error for a request whose authentication had this result, nil if its key is valid.
func (r *router) refusal(authErr error) error {
	switch {
	case authErr == nil:
		return nil
	case errors.Is(authErr, auth.ErrStale):
		return problem.Internal("authorization data is stale", authErr).Coded(problem.CodeStale)
	}
	r.metrics.refused(auth.ReasonOf(authErr))
	r.auth.MarkRefused(authErr)
	return problem.Unauthorized(authErr)
}

// allow rejects keys whose scopes do not cover the operation. An operation without a scope accepts any key.
func (r *router) allow(needed []v1alpha1.Scope) gin.HandlerFunc {
	return func(c *gin.Context) {
		s := stateOf(c)
		s.needed = needed
		if err := r.lacking(s.identity, needed); err != nil {
			fail(c, err)
		}
	}
}

// lacking returns the error for a key that lacks one of the scopes, nil if it has all.
func (r *router) lacking(identity auth.Identity, needed []v1alpha1.Scope) error {
	for _, scope := range needed {
		if !identity.Allows(scope) {
			r.metrics.refused(auth.ReasonScope)
			r.auth.MarkForbidden(identity, scope)
			return problem.Forbidden(string(scope))
		}
	}
	return nil
}

// readmit authenticates again for a request whose body or response takes a while: its key may have been revoked or have
// lost a scope, and its organization may have been deleted. It returns the key's identity as of now, and does not check
// the age of the data again.
func (r *router) readmit(c *gin.Context) (auth.Identity, error) {
	s := stateOf(c)
	identity, err := s.authenticate()
	if err = r.refusal(err); err != nil {
		return auth.Identity{}, err
	}
	if err = r.lacking(identity, s.needed); err != nil {
		return auth.Identity{}, err
	}
	return identity, r.shows(identity, s.needed)
}

// validate checks the request against the contract.
func (r *router) validate(described *openapi.Operation, segments map[string]string) gin.HandlerFunc {
	return func(c *gin.Context) {
		s := stateOf(c)
		s.request.Identity = s.identity
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

// takeBody reads the body and then authenticates again, or leaves both to the operation if the body is a stream.
func (r *router) takeBody(c *gin.Context, described *openapi.Operation) (err error) {
	request := &stateOf(c).request
	if described.IsStream() {
		if request.Stream, err = openStream(c, described); err != nil {
			return named(problem.InvalidBody, err)
		}
		request.Stream.Readmit = func() (auth.Identity, error) { return r.readmit(c) }
		return nil
	}
	if request.Body, err = receiveBody(c, described); err != nil {
		return err
	}
	request.Identity, err = r.readmit(c)
	return err
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

// longBody is the length from which a body needs a place in longBodies.
const longBody = 64 << 10

// longBodyRetryAfter is when to try again for a place: a body usually arrives at once.
const longBodyRetryAfter = time.Second

// longBodies limits how many long bodies are received at a time, in total and per organization, because a client that
// does not send the end of one occupies memory until readTimeout.
var longBodies = slots.New(128, 32)

// receive takes a place for a body of at most that many bytes, or of unknown length, which may be long. The caller
// frees it once the body is read.
func receive(c *gin.Context, most int64) (free func(), err error) {
	if length := c.Request.ContentLength; most <= longBody || 0 <= length && length <= longBody {
		return func() {}, nil
	}
	if free, err = longBodies.Take(stateOf(c).identity.Organization); err != nil {
		return nil, problem.Busy("too many long bodies are being received", longBodyRetryAfter)
	}
	return free, nil
}

// receiveBody is readBody with a place for the body.
func receiveBody(c *gin.Context, described *openapi.Operation) (openapi.Body, error) {
	free, err := receive(c, described.MaxBodyBytes)
	if err != nil {
		return openapi.Body{}, err
	}
	defer free()
	body, err := readBody(c, described)
	if err != nil {
		return openapi.Body{}, named(problem.InvalidBody, err)
	}
	return body, nil
}

// contentCoding returns the coding of the request's body in lower case, "" if it has none.
func contentCoding(c *gin.Context) string {
	coding := strings.ToLower(c.GetHeader("Content-Encoding"))
	if coding == "identity" {
		return ""
	}
	return coding
}

func invalidEncoding(text string) error {
	return &openapi.InvalidError{Field: "content-encoding", Code: problem.CodeInvalid, Text: text}
}

// readBody parses a request's body. Its errors are safe to show to a client.
func readBody(c *gin.Context, described *openapi.Operation) (openapi.Body, error) {
	limit := described.MaxBodyBytes
	body := bufio.NewReader(http.MaxBytesReader(c.Writer, c.Request.Body, limit))
	if described.BodyIsOptional {
		if _, err := body.Peek(1); errors.Is(err, io.EOF) {
			return openapi.Body{}, nil
		}
	}
	if err := described.CheckContentType(c.GetHeader("Content-Type")); err != nil {
		return openapi.Body{}, err
	}
	if contentCoding(c) != "" {
		return openapi.Body{}, invalidEncoding("the body must not be compressed")
	}
	content, err := io.ReadAll(body)
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return openapi.Body{}, &openapi.InvalidError{Code: problem.CodeTooLong,
			Text: fmt.Sprintf("the body must be at most %d bytes", limit)}
	case err != nil:
		return openapi.Body{}, &openapi.InvalidError{Code: problem.CodeMalformed,
			Text: "the body could not be read to its end"}
	}
	return described.ParseBody(content)
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
