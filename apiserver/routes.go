package apiserver

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/appsec-dev/findings-operator/apiserver/auth"
	"github.com/appsec-dev/findings-operator/apiserver/console"
	"github.com/appsec-dev/findings-operator/apiserver/console/session"
	"github.com/appsec-dev/findings-operator/apiserver/handlers"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/ratelimit"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// specPath is where the contract is served, without authentication.
const specPath = "/openapi.json"

// router holds the dependencies of the middlewares.
type router struct {
	auth    *auth.Authenticator
	model   *readmodel.Model
	limiter *ratelimit.Limiter
	tracer  *tracing.Tracer
	// sessions seals the console's sessions; nil without a console. The console itself is created with the
	// routes.
	sessions *session.Sealer
	console  *console.Console
	metrics  *metrics
	log      *slog.Logger
	// dataStaleness is how long a kind may be silent before requests that depend on it are refused.
	dataStaleness time.Duration
	// leaving is closed when the process begins to stop.
	leaving <-chan struct{}
	// trustedProxies are the proxies whose X-Forwarded-For is trusted.
	trustedProxies []netip.Prefix
	// templates maps Gin's name of a route to the contract's.
	templates map[string]string
}

// handler builds the chain of every request:
//
//	observe    names, logs, counts and traces the request
//	recovery   answers a panic
//	await      holds the request back while the service starts
//	identify   authenticates the key
//	limit      429 if the caller has used up its limit; the contract and /docs end behind it
//	refuse     401 without a valid key; unknown paths and methods, and OPTIONS, end behind it
//	allow      403 if the key lacks a scope
//	checkDataAge x-data-age, or 500 if the data behind the response is too old
//	checkOrganization 500 if the read model does not show the key's organization
//	validate   400 if the request violates the contract, then 401 or 403 if its key was revoked while its body was read
//	perform    the operation
//
// The limit stands between identify and refuse, where the key is known and requests without a valid key have
// not been rejected yet: so guesses eventually get 429, although each is still checked.
func (r *router) handler(operations map[string]handlers.Handle) (http.Handler, error) {
	spec, err := openapi.Load()
	if err != nil {
		return nil, err
	}
	described, err := openapi.Operations(spec)
	if err != nil {
		return nil, err
	}
	contract, err := openapi.JSON()
	if err != nil {
		return nil, err
	}

	engine := newEngine()
	r.templates = map[string]string{}
	engine.Use(r.observe, recovery)
	if r.sessions != nil {
		if r.console, err = console.New(inside(engine), *r.sessions); err != nil {
			return nil, err
		}
		r.addConsoleAssets(engine)
	}
	engine.Use(r.await, r.identify, r.limit)
	if r.console != nil {
		r.addConsolePages(engine)
	}
	if err := r.addPublic(engine, contract); err != nil {
		return nil, err
	}
	engine.NoRoute(r.refuse, r.serveUnknown(problem.NotFound("path")))
	engine.NoMethod(r.refuse, r.serveUnknown(problem.MethodNotAllowed()))
	if err := r.addOperations(engine.Group("", r.refuse), described, operations); err != nil {
		return nil, err
	}
	return engine, nil
}

// serveUnknown answers requests without a route: browsers get a page with links, API clients an error.
func (r *router) serveUnknown(unknown *problem.Problem) gin.HandlerFunc {
	return func(c *gin.Context) {
		if r.ofConsole(c.Request) && c.Request.Method == http.MethodGet {
			r.servePage(console.Missing())(c)
			return
		}
		fail(c, unknown)
	}
}

// addPublic serves what needs no key: the contract, and the page that displays it.
func (r *router) addPublic(engine *gin.Engine, contract []byte) error {
	public, err := docsFiles()
	if err != nil {
		return err
	}
	body := newFile(contract)
	public[specPath] = func(c *gin.Context) {
		c.Writer.Header()["Content-Type"] = applicationJSON
		body.send(c)
	}
	for at, handler := range public {
		r.templates[at] = at
		engine.GET(at, handler)
		engine.HEAD(at, handler)
		engine.OPTIONS(at, options([]string{http.MethodGet, http.MethodHead}))
	}
	return nil
}

// addOperations serves everything that the contract describes, and OPTIONS of each path.
func (r *router) addOperations(api *gin.RouterGroup, described map[string]*openapi.Operation,
	operations map[string]handlers.Handle) error {
	methods := map[string][]string{}
	for id, contract := range described {
		handle := operations[id]
		if handle == nil {
			return fmt.Errorf("operation %q is described in openapi.yaml and not served; run make generate", id)
		}
		path, segments := ginPath(contract.Path)
		r.templates[path] = contract.Path
		for _, method := range contract.Methods() {
			api.Handle(method, path, r.allow(contract.Scopes), r.checkDataAge(contract), r.checkOrganization,
				r.validate(contract, segments), r.perform(handle))
			methods[path] = append(methods[path], method)
		}
	}
	for path, served := range methods {
		api.OPTIONS(path, options(served))
	}
	return nil
}

// options returns the methods that a path supports.
func options(methods []string) gin.HandlerFunc {
	methods = append(slices.Clone(methods), http.MethodOptions)
	slices.Sort(methods)
	allowed := strings.Join(methods, ", ")
	return func(c *gin.Context) {
		c.Header("Allow", allowed)
		c.Status(http.StatusNoContent)
		c.Writer.WriteHeaderNow()
	}
}

// newEngine returns a Gin engine that routes by the path as it was sent: an encoded slash is part of an id, and
// no path redirects to another.
func newEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.RedirectTrailingSlash = false
	engine.RedirectFixedPath = false
	engine.HandleMethodNotAllowed = true
	engine.UseEscapedPath = true
	// Gin would decode a plus sign to a space.
	engine.UnescapePathValues = false
	return engine
}

// ginPath converts a path template of the contract to Gin's notation. Gin allows only one name for a segment,
// but the contract uses two (`/v2/repos/{id}`, `/v2/repos/{repo_id}`), so a segment is named by its position;
// segments maps these names to the contract's.
func ginPath(template string) (path string, segments map[string]string) {
	segments = map[string]string{}
	parts := strings.Split(template, "/")
	for i, part := range parts {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			place := "segment" + strconv.Itoa(i)
			segments[place] = strings.TrimSuffix(name, "}")
			parts[i] = ":" + place
		}
	}
	return strings.Join(parts, "/"), segments
}
