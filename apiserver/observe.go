package apiserver

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
	"github.com/appsec-dev/findings-operator/internal/clientaddress"
)

// requestIDHeader identifies a request in responses and logs.
const requestIDHeader = "X-Request-Id"

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

// outcome returns the status to log and to count: the one that was sent, the status of the error that cut the answer
// off, or statusClientGone if the client left before an error of the server. A request often fails because its client
// gave up, which must not raise an alert. A server that stops cancels requests, too.
func (r *router) outcome(c *gin.Context, s *state, took time.Duration) int {
	status := c.Writer.Status()
	if s.err != nil && s.err.Status >= http.StatusInternalServerError {
		status = s.err.Status
	}
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
	r.log.LogAttrs(c.Request.Context(), at, "Request", r.accessLine(c, s, route, status, took)...)
}

// accessLine omits the query, headers and bodies, because they may contain secrets.
func (r *router) accessLine(c *gin.Context, s *state, route string, status int, took time.Duration) []slog.Attr {
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
	if client := clientaddress.Of(c.Request, r.trustedProxies); client != clientaddress.Of(c.Request, nil) {
		line = append(line, slog.String("client", client.String()))
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
