package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/appsec-dev/findings-operator/apiserver/console"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/session"
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/cursor"
	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// routerWith serves a handler behind the first two middlewares.
func routerWith(log *bytes.Buffer, handler gin.HandlerFunc) http.Handler {
	return engineOf(&router{metrics: newMetrics(prometheus.NewRegistry()), log: slog.New(slog.NewTextHandler(log, nil))}, handler)
}

func engineOf(r *router, handler gin.HandlerFunc) http.Handler {
	engine := newEngine()
	engine.Use(r.observe, recovery)
	engine.GET("/", handler)
	return engine
}

func TestAPanicIsAnInternalErrorAndItsCauseIsForTheLog(t *testing.T) {
	var log bytes.Buffer
	answer := answerOf(routerWith(&log, func(*gin.Context) { panic("the cause") }), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	want := `{"error":"Internal server error","detail":"the request could not be answered","code":"internal","field":""}`
	if answer.Code != http.StatusInternalServerError || answer.Body.String() != want {
		t.Errorf("got %d %s, want 500 %s", answer.Code, answer.Body, want)
	}
	harness.Contains(t, "the log", log.String(), "level=ERROR", "status=500", "the cause", "recovery_test.go")
}

// The proxy's address does not show who guesses keys.
func TestTheLogNamesTheClientBehindATrustedProxy(t *testing.T) {
	for reason, test := range map[string]struct {
		trusted []netip.Prefix
		want    string
	}{
		"a trusted proxy": {[]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, " remote=192.0.2.1:4711 client=203.0.113.7\n"},
		"any other peer":  {nil, " remote=192.0.2.1:4711\n"},
	} {
		var log bytes.Buffer
		r := &router{metrics: newMetrics(prometheus.NewRegistry()), log: slog.New(slog.NewTextHandler(&log, nil)), trustedProxies: test.trusted}
		request := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		request.RemoteAddr = "192.0.2.1:4711"
		request.Header.Set("X-Forwarded-For", "203.0.113.7")
		answerOf(engineOf(r, func(c *gin.Context) { c.Status(http.StatusOK) }), request)
		harness.Contains(t, reason, log.String(), test.want)
	}
}

// Errors of other services can quote what a client sent, however long.
func TestALineOfTheLogIsBounded(t *testing.T) {
	var log bytes.Buffer
	long := errors.New(strings.Repeat("ä", 1<<20)) // the bound is in the middle of a character
	request := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	routerWith(&log, func(c *gin.Context) {
		c.Request.Method = strings.Repeat("M", 30<<10)
		fail(c, problem.Internal("away", long))
	}).ServeHTTP(httptest.NewRecorder(), request)
	if got := log.String(); len(got) > maxError+1000 || !strings.Contains(got, "ä...") {
		t.Errorf("the log has %d bytes, and ends with %q", len(got), got[max(0, len(got)-100):])
	}
}

func TestAPanicInTheMiddleOfAnAnswerCutsItOff(t *testing.T) {
	var log bytes.Buffer
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("got %v; net/http must hear of it, or the client takes half an answer for a whole one", err)
		}
		harness.Contains(t, "the log", log.String(), "level=ERROR", "status=500", "in the middle")
	}()
	routerWith(&log, func(c *gin.Context) {
		send(c, http.StatusOK, content.Of([]byte(`{"items":[`)))
		panic("in the middle")
	}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
}

// The console passes exports on, and people cancel downloads.
func TestARequestInsideThatIsAbortedIsNoPanic(t *testing.T) {
	var inner, outer bytes.Buffer
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("got %v, want the connection to be aborted", err)
		}
		harness.Contains(t, "the line of the request inside", inner.String(), "the client is gone")
		harness.Contains(t, "the line of the abort, which is no failure", outer.String(), "level=INFO")
		harness.Lacks(t, "the line of the abort, which is no failure", outer.String(), "goroutine")
	}()
	inside := routerWith(&inner, func(c *gin.Context) {
		stateOf(c).err = problem.Internal("", errors.New("the client is gone"))
		panic(http.ErrAbortHandler)
	})
	routerWith(&outer, func(c *gin.Context) { inside.ServeHTTP(c.Writer, c.Request) }).
		ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
}

func TestAPageExplainsARefusalByItsCode(t *testing.T) {
	shown, err := console.New(http.NotFoundHandler(), session.Sealer{Keys: cursor.NewRandom().Derive})
	harness.Must(t, err)
	for _, refusal := range []struct {
		p    *problem.Problem
		want string
	}{
		{problem.Forbidden("findings:read"), "for a key with that scope"},
		{problem.Busy("too many", time.Second), "many such requests"},
	} {
		answer := answerOf(routerWith(&bytes.Buffer{}, func(c *gin.Context) {
			stateOf(c).console = shown
			fail(c, refusal.p)
		}), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		if answer.Code != refusal.p.Status || !strings.Contains(answer.Body.String(), refusal.want) {
			t.Errorf("%s: got %d without %q\n%s", refusal.p.Code, answer.Code, refusal.want, answer.Body)
		}
	}
}

// An import, or a count of many findings, takes longer than some clients wait.
func TestAnErrorAfterItsClientHasLeftIsNoneOfTheServer(t *testing.T) {
	stopping := make(chan struct{})
	close(stopping)
	for reason, test := range map[string]struct {
		gone    bool
		panics  bool
		leaving chan struct{}
		code    string
		level   string
	}{
		"the client is gone":                     {gone: true, code: "499", level: "INFO"},
		"the client waits":                       {code: "500", level: "ERROR"},
		"the handler panics once it is gone":     {gone: true, panics: true, code: "500", level: "ERROR"},
		"the server stops, and cancels requests": {gone: true, leaving: stopping, code: "500", level: "ERROR"},
	} {
		var log bytes.Buffer
		registry := prometheus.NewRegistry()
		r := &router{metrics: newMetrics(registry), log: slog.New(slog.NewTextHandler(&log, nil)), leaving: test.leaving}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		answerOf(engineOf(r, func(c *gin.Context) {
			if test.gone {
				leave()
			}
			if test.panics {
				panic("a mistake")
			}
			fail(c, problem.TryAgain("away", c.Request.Context().Err()))
		}), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
		want := fmt.Sprintf(`
# HELP findings_api_requests_total Requests by status; 499 if the client left before an error of the server, 500 if it cut off the answer.
# TYPE findings_api_requests_total counter
findings_api_requests_total{code=%q,method="GET",route="unmatched"} 1
`, test.code)
		harness.NoError(t, reason, testutil.GatherAndCompare(registry, strings.NewReader(want), "findings_api_requests_total"))
		harness.Contains(t, reason+": the log", log.String(), "level="+test.level, "status="+test.code)
	}
}

// A page cancels its other requests after the first error. If one of them has an error of its own meanwhile, the page's
// client still waits.
func TestAnErrorInARequestThatItsPageCanceledIsOneOfTheServer(t *testing.T) {
	first := errors.New("the first error of the page")
	for reason, test := range map[string]struct {
		gone   bool
		cause  error
		status int
		level  string
	}{
		"it fails with the page's error":   {cause: fmt.Errorf("count: %w", first), status: 499, level: "INFO"},
		"it fails for a reason of its own": {cause: errors.New("etcd is away"), status: 500, level: "ERROR"},
		"it fails because it is canceled":  {cause: fmt.Errorf("list: %w", context.Canceled), status: 499, level: "INFO"},
		"the page's client is gone":        {gone: true, cause: errors.New("etcd is away"), status: 499, level: "INFO"},
	} {
		var log bytes.Buffer
		r := &router{metrics: newMetrics(prometheus.NewRegistry()), log: slog.New(slog.NewTextHandler(&log, nil))}
		engine := newEngine()
		engine.Use(r.observe, recovery)
		var err error
		r.console, err = console.New(inside(engine), session.Sealer{Keys: cursor.NewRandom().Derive})
		harness.Must(t, err)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		engine.GET("/operation", func(c *gin.Context) { fail(c, problem.TryAgain("away", test.cause)) })
		engine.GET("/page", r.servePage(page.Route{Public: true, Serve: func(ctx context.Context, v *page.Visit) (page.Response, error) {
			if test.gone {
				leave()
			}
			all, cancel := context.WithCancelCause(ctx)
			cancel(first)
			_, err := v.API.Get(all, "/operation", nil, &struct{}{})
			return page.Response{}, err
		}}))
		answerOf(engine, httptest.NewRequestWithContext(ctx, http.MethodGet, "/page", http.NoBody))
		want := fmt.Sprintf("level=%s msg=Request", test.level)
		line, _, _ := strings.Cut(log.String(), "\n") // the page's own comes after it
		if status := fmt.Sprintf("status=%d ", test.status); !strings.Contains(line, want) || !strings.Contains(line, status) ||
			!strings.Contains(line, "path=/operation") {
			t.Errorf("%s: got %q, want %q and %q", reason, line, want, status)
		}
	}
}

// Net/http cancels a request at the read deadline too. An upload has none once it is read.
func TestAnErrorAtTheReadDeadlineIsOneOfTheServer(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	leave()
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	c.Request = httptest.NewRequestWithContext(ctx, http.MethodPost, "/", http.NoBody)
	c.Status(http.StatusInternalServerError)
	harness.Same(t, "any request", http.StatusInternalServerError, (&router{}).outcome(c, &state{}, readTimeout-readHeaderTimeout))
	upload := &state{request: handlers.Request{Stream: &handlers.Stream{}}}
	harness.Same(t, "an upload", statusClientGone, (&router{}).outcome(c, upload, time.Minute))
}

func TestGinPathNamesSegmentsByTheirPlace(t *testing.T) {
	path, segments := ginPath("/v2/repos/{repo_id}/projects/{project_id}")
	if path != "/v2/repos/:segment3/projects/:segment5" || segments["segment3"] != "repo_id" || segments["segment5"] != "project_id" {
		t.Errorf("got %s %v", path, segments)
	}
}

func TestA500ThatSaysToTryAgainSaysWhenAndInItsCode(t *testing.T) {
	for reason, test := range map[string]struct {
		err        error
		want, code string
	}{
		"what may pass by itself": {problem.TryAgain("the change could not be stored", nil), "1", "try_again"},
		"any other error":         {errors.New("etcd is away"), "1", "try_again"},
		"what does not":           {problem.Internal("ask the operators", nil), "", "internal"},
		"a 404":                   {problem.NotFound("finding"), "", "not_found"},
	} {
		var log bytes.Buffer
		answer := answerOf(routerWith(&log, func(c *gin.Context) { fail(c, test.err) }), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		harness.Same(t, reason+": Retry-After", test.want, answer.Header().Get("Retry-After"))
		harness.Contains(t, reason, answer.Body.String(), fmt.Sprintf(`"code":%q`, test.code))
	}
}
