package apiserver

import (
	"context"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/console"
	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// insideKey marks a request that the console makes within this process. Clients cannot set it.
type insideKey struct{}

// fromInside reports whether the request was made for a page of the console. Such requests do not count against a rate
// limit, because the page was counted.
func fromInside(ctx context.Context) bool { return ctx.Value(insideKey{}) != nil }

// pageKey holds the context of the request for a page, both in that request and in those that the console makes for it.
type pageKey struct{}

// inside serves requests of the console.
func inside(engine http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		engine.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), insideKey{}, true)))
	})
}

// ofConsole reports whether the request comes from a browser: for a page of the console or for an export.
func (r *router) ofConsole(request *http.Request) bool {
	return r.console != nil &&
		(strings.HasPrefix(request.URL.Path, console.Path) || request.Context().Value(exportKey{}) != nil)
}

// addConsoleAssets serves the assets, which need no key and count against no limit.
func (r *router) addConsoleAssets(engine *gin.Engine) {
	at := console.Path + console.AssetsPath
	r.templates[at] = console.Path + "assets"
	files := map[string]*file{}
	for name, content := range r.console.Assets() {
		files[name] = newFile(content)
	}
	serve := func(c *gin.Context) {
		name := strings.TrimPrefix(c.Param("name"), "/")
		body, there := files[name]
		if !there {
			fail(c, problem.NotFound("path"))
			return
		}
		maps.Copy(c.Writer.Header(), r.console.AssetHeader(c.Param("version"), name))
		body.send(c)
	}
	engine.GET(at, serve)
	engine.HEAD(at, serve)
}

// addConsolePages serves the pages.
func (r *router) addConsolePages(engine *gin.Engine) {
	for _, route := range r.console.Routes() {
		at := console.Path + route.Path
		r.templates[at] = template(at)
		chain := []gin.HandlerFunc{r.refuse}
		if route.Public {
			chain = nil
		}
		chain = append(chain, r.servePage(route))
		engine.Handle(route.Method, at, chain...)
		if route.Method == http.MethodGet {
			engine.HEAD(at, chain...)
		}
	}
	r.addExport(engine)
	r.addEvents(engine)
	home := strings.TrimSuffix(console.Path, "/")
	r.templates[home] = home
	engine.GET(home, func(c *gin.Context) { c.Redirect(http.StatusSeeOther, console.Path) })
}

// segment matches a named part of a path in Gin's notation.
var segment = regexp.MustCompile(`:(\w+)`)

// template converts a path from Gin's notation to that of the contract.
func template(path string) string { return segment.ReplaceAllString(path, "{$1}") }

func (r *router) servePage(route page.Route) gin.HandlerFunc {
	return func(c *gin.Context) {
		answer, err := r.serve(c, route)
		if err != nil {
			fail(c, err)
			return
		}
		if answer.Err != nil {
			stateOf(c).err = problem.Internal("", answer.Err)
		}
		sendAnswer(c, answer)
	}
}

// serve returns the console's answer. A long form keeps its place until then, but not while the page is sent.
func (r *router) serve(c *gin.Context, route page.Route) (console.Answer, error) {
	free, err := receive(c, console.MaxFormBytes)
	if err != nil {
		return console.Answer{}, err
	}
	defer free()
	ctx := c.Request.Context()
	c.Request = c.Request.WithContext(context.WithValue(ctx, pageKey{}, ctx))
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, console.MaxFormBytes)
	return r.console.Serve(route, console.Request{
		HTTP: c.Request, RequestID: stateOf(c).requestID, Path: c.Param,
		Secure: strings.HasPrefix(origin(c.Request), "https:"),
	}), nil
}

func sendAnswer(c *gin.Context, answer console.Answer) {
	maps.Copy(c.Writer.Header(), answer.Header)
	sendBody(c, answer.Status, content.Of(answer.Body))
}

// failPage answers a browser's request with a page that explains the error.
func failPage(c *gin.Context, shown *console.Console, p *problem.Problem) {
	failure := api.Failed(p.Status, p.Detail)
	failure.Body.Code, failure.Body.Field = p.Code, p.Field
	if seconds, err := strconv.Atoi(c.Writer.Header().Get("Retry-After")); err == nil {
		failure.RetryAt = time.Now().Add(time.Duration(seconds) * time.Second)
	}
	request := c.Request
	if from, is := request.Context().Value(exportKey{}).(*http.Request); is {
		request = from
	}
	sendAnswer(c, shown.Failed(request, stateOf(c).requestID, failure))
	c.Abort()
}
