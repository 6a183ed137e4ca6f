package console

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/session"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func newConsole(t *testing.T, operations http.Handler) *Console {
	t.Helper()
	c, err := New(operations, session.Sealer{Keys: func(string) [][]byte { return [][]byte{make([]byte, 32)} }})
	harness.Must(t, err)
	return c
}

// The page does not reveal the cause of an error; the log contains all of it.
func TestTheCauseOfAFailedPageIsForTheLogAlone(t *testing.T) {
	operations := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a secret of the service") })
	c := newConsole(t, operations)
	for name, tc := range map[string]struct {
		serve  page.Handle
		status int
		logged string
	}{
		"an error": {func(context.Context, *page.Visit) (page.Response, error) {
			return page.Response{}, errors.New("a secret of the page")
		}, http.StatusInternalServerError, "a secret of the page"},
		"an operation that panics": {func(ctx context.Context, v *page.Visit) (page.Response, error) {
			_, err := v.API.Get(ctx, "/v2/findings", nil, &struct{}{})
			return page.Response{}, err
		}, http.StatusInternalServerError, "a secret of the service"},
		"what the reader can mend": {func(context.Context, *page.Visit) (page.Response, error) {
			return page.Response{}, api.Failed(http.StatusConflict, "Ada was faster.")
		}, http.StatusConflict, ""},
	} {
		request := httptest.NewRequest(http.MethodGet, Path+"x", http.NoBody)
		answer := c.Serve(page.Route{Method: http.MethodGet, Serve: tc.serve, Public: true}, Request{HTTP: request})
		if answer.Status != tc.status || strings.Contains(string(answer.Body), "secret") {
			t.Errorf("%s: %d\n%s", name, answer.Status, answer.Body)
		}
		harness.ErrorContains(t, name+": the log", answer.Err, tc.logged)
	}
}

func TestAPageSaysHowOldItMayBe(t *testing.T) {
	c := newConsole(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v2/events": // they also depend on kinds that the page does not show
			w.Header().Set("X-Data-Age", "800")
		case "/v2/trends":
			w.Header().Set("X-Data-Age", "700")
			w.WriteHeader(http.StatusInternalServerError)
		default:
			w.Header().Set("X-Data-Age", r.URL.Query().Get("age"))
		}
		_, _ = w.Write([]byte(`{"key":"ada","scopes":["findings:read"]}`))
	}))
	for oldest, minutes := range map[string]string{"200": "3", "59": "0"} {
		serve := func(ctx context.Context, v *page.Visit) (page.Response, error) {
			if _, err := v.API.Get(ctx, "/v2/trends", nil, &struct{}{}); !api.Is(err, http.StatusInternalServerError) {
				t.Errorf("the history is not refused: %v", err)
			}
			for _, age := range []string{oldest, "5"} {
				if _, err := v.API.Get(ctx, "/v2/findings", url.Values{"age": {age}}, &struct{}{}); err != nil {
					return page.Response{}, err
				}
			}
			return page.Response{Body: templ.NopComponent}, nil
		}
		request := httptest.NewRequest(http.MethodGet, Path+"x", http.NoBody)
		answer := c.Serve(page.Route{Method: http.MethodGet, Serve: serve}, Request{HTTP: request})
		shown := string(answer.Body)
		harness.Same(t, "its age", oldest, answer.Header.Get("X-Data-Age"))
		harness.Same(t, oldest+" s are too few for a warning", minutes == "0", strings.Contains(shown, `id="data-age" role="status" hidden`))
		harness.Contains(t, oldest+" s", shown, "may be <span>"+minutes+"</span> min old")
	}
	refused := func(ctx context.Context, v *page.Visit) (page.Response, error) {
		_, err := v.API.Get(ctx, "/v2/trends", nil, &struct{}{})
		return page.Response{}, err
	}
	request := httptest.NewRequest(http.MethodGet, Path+"x", http.NoBody)
	answer := c.Serve(page.Route{Method: http.MethodGet, Serve: refused}, Request{HTTP: request})
	harness.Same(t, "the age of what is refused", "700", answer.Header.Get("X-Data-Age"))
}

// To load the error again would send the form again.
func TestARefusedFormLeadsBackToItsPage(t *testing.T) {
	c := newConsole(t, http.NotFoundHandler())
	for _, status := range []int{
		http.StatusPreconditionFailed, http.StatusTooManyRequests, http.StatusInternalServerError,
	} {
		refuse := func(context.Context, *page.Visit) (page.Response, error) {
			return page.Response{}, api.Failed(status, "")
		}
		request := httptest.NewRequest(http.MethodPost, Path+"policies/p-1", http.NoBody)
		request.Header.Set("Referer", "http://example.com/console/policies/p-1?x=y")
		shown := string(c.Serve(page.Route{Method: http.MethodPost, Serve: refuse, Public: true}, Request{HTTP: request}).Body)
		harness.Lacks(t, strconv.Itoa(status), strings.ToLower(shown), "reload")
		harness.Contains(t, strconv.Itoa(status), shown, `href="/console/policies/p-1?x=y"`)
	}
}

// What one key may not see, another may. Of a long address, a browser sends the origin alone as Referer.
func TestALoginWithAnotherKeyLeadsBackToThePage(t *testing.T) {
	c := newConsole(t, http.NotFoundHandler())
	const origin = "http://example.com/"
	for _, tc := range []struct{ method, path, referer, want string }{
		{http.MethodGet, "scans/s-1?x=y", "", "scans%2Fs-1%3Fx%3Dy"},
		{http.MethodPost, "findings/f-1", origin + "console/findings?x=y", "findings%3Fx%3Dy"},
		{http.MethodPost, "policies/_new?x=y", origin, "policies%2F_new%3Fx%3Dy"},
		{http.MethodPost, "findings/f-1", origin, "findings%2Ff-1"},
		// Proxies refuse such a header.
		{http.MethodPost, "policies/_new?x=" + strings.Repeat("y", page.MaxAddress), origin, ""},
		{http.MethodGet, "policies/_new?x=" + strings.Repeat("y", page.MaxAddress), "", ""},
		{http.MethodPost, "operations/op-1/undo", origin, ""}, // there is no such page
		// It is saved, and the login stays.
		{http.MethodGet, "export?format=csv", origin + "console/findings?x=y", "findings%3Fx%3Dy"},
		{http.MethodGet, "export?format=csv", origin, ""},
		{http.MethodGet, "export?format=csv", origin + "console/login?next=%2Fconsole%2Fexport", ""},
		{http.MethodGet, "finding/f-1", "", ""}, // a wrong address
		// The login itself failed.
		{http.MethodPost, "login?next=%2Fconsole%2Fscans", origin + "console/login?next=%2Fconsole%2Fscans", "scans"},
		{http.MethodGet, "login?next=%2Fconsole%2Fscans&x=;", "", "scans"},
	} {
		request := httptest.NewRequest(tc.method, Path+tc.path, http.NoBody)
		request.Header.Set("Referer", tc.referer)
		shown := string(c.Failed(request, "", api.Failed(http.StatusNotFound, "")).Body)
		harness.Contains(t, tc.method+" "+tc.path+" from "+tc.referer, shown, `href="/console/login?next=%2Fconsole%2F`+tc.want+`">Log in with another key`)
	}
}

// It looks as if the key was wrong, which has a message of its own.
func TestALoginSaysThatTheBrowserDidNotKeepTheCookie(t *testing.T) {
	c := newConsole(t, http.NotFoundHandler())
	for _, tc := range []struct {
		reason, path, cookie string
		said                 bool
	}{
		{"after a login", "login?next=%2Fconsole%2Fscans", "", true},
		{"a session that has ended", "findings", "", false},
		{"a cookie that the service cannot open", "login", "foreign", false},
	} {
		request := httptest.NewRequest(http.MethodGet, Path+"scans", http.NoBody)
		request.Header.Set("Referer", "http://example.com"+Path+tc.path)
		if tc.cookie != "" {
			request.AddCookie(&http.Cookie{Name: session.CookieName, Value: tc.cookie})
		}
		there := c.Failed(request, "", api.Failed(http.StatusUnauthorized, "")).Header.Get("Location")
		route := c.Routes()[slices.IndexFunc(c.Routes(), func(r page.Route) bool { return r.Path == "login" && r.Method == http.MethodGet })]
		shown := string(c.Serve(route, Request{HTTP: httptest.NewRequest(http.MethodGet, there, http.NoBody)}).Body)
		harness.Same(t, tc.reason, tc.said, strings.Contains(shown, "it has ended, or the browser did not keep its cookie. If you have just logged in"))
	}
}

func TestAPageOfAnotherSessionIsToldToLoadAgain(t *testing.T) {
	c := newConsole(t, http.NotFoundHandler())
	const anotherKey = "another key since this page was loaded"
	for name, tc := range map[string]struct{ method, header, detail, next string }{
		"part of a page":       {http.MethodGet, "other", anotherKey, "Load the page again."},
		"change by a module":   {http.MethodPost, "other", anotherKey, "Load the page with the form again"},
		"form without a token": {http.MethodPost, "", "older than your session", "Load the page with the form again"},
	} {
		request := httptest.NewRequest(tc.method, Path+"x", http.NoBody)
		request.Header.Set(tokenHeader, tc.header)
		request.Header.Set(scriptHeader, "1")
		answer := c.Serve(page.Route{Method: tc.method}, Request{HTTP: request})
		shown := string(answer.Body)
		says := strings.Contains(shown, tc.detail) && strings.Contains(shown, tc.next) && !strings.Contains(shown, "scope")
		if answer.Status != http.StatusForbidden || !says {
			t.Errorf("%s: %d\n%s", name, answer.Status, shown)
		}
	}
}

// elsewhere holds the addresses that the test of all pages does not visit, with the reason.
var elsewhere = map[string]string{
	"findings/:id/row":          "a module requests it",
	"login":                     "it is visited without a session",
	"operations/:id":            "another test makes an operation and visits it",
	"operations/:id/findings":   "another test makes an operation and visits it",
	"operations/_new":           "it leads to the list of findings",
	"reviews/:id/issues/:issue": "it leads to the page of the review",
}

func TestEveryPageIsVisitedByTheTestOfAllPages(t *testing.T) {
	_, visited, _ := strings.Cut(harness.RepositoryFile(t, "test", "console", "pages_test.go"), "var pages = []string{")
	visited, _, _ = strings.Cut(visited, "\n}")
	for _, route := range newConsole(t, nil).Routes() {
		address := regexp.MustCompile(`:\w+`).ReplaceAllString(route.Path, `[^/"?]+`)
		page := regexp.MustCompile(`"/console/` + address + `["?]`)
		if route.Method == http.MethodGet && elsewhere[route.Path] == "" && !page.MatchString(visited) {
			t.Errorf("test/console/pages_test.go: add /console/%s to pages", route.Path)
		}
	}
}

// The test of all pages judges dark mode only by its colours.
func TestAColourSchemeChangesOnlyTheTokensOfColours(t *testing.T) {
	all, err := readAssets()
	harness.Must(t, err)
	for name, content := range all.files {
		for _, scheme := range []string{"prefers-color-scheme", "matchMedia", "light-dark("} {
			isToken := strings.HasSuffix(name, "tokens.css") && scheme == "light-dark("
			if strings.Contains(string(content), scheme) && !isToken {
				t.Errorf("%s depends on the colour scheme: it contains %q", name, scheme)
			}
		}
	}
}
