package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// document is the contract that every answer of every test is checked against.
var document = sync.OnceValues(openapi.Load)

// routes finds what the contract says of a request.
var routes = sync.OnceValues(func() (routers.Router, error) {
	spec, err := document()
	if err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(spec)
})

// caller calls the REST API with a key and holds each answer against the contract.
type caller struct {
	t      testing.TB
	server *server
	token  string // none where empty
	// address is where the caller is, behind a proxy that the server trusts: one of its own,
	// so that no test uses up another's limit.
	address string
}

var addresses atomic.Uint32

// newCaller returns one with that token.
func newCaller(t testing.TB, s *server, token string) *caller {
	n := addresses.Add(1)
	address := netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
	return &caller{t: t, server: s, token: token, address: address.String()}
}

// answer is what came back.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

// change alters a request before it is sent.
type change func(*http.Request)

func header(name, value string) change {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func (c *caller) get(path string, changes ...change) answer {
	c.t.Helper()
	return c.do(http.MethodGet, path, "", changes...)
}

// patch sends a JSON body.
func (c *caller) patch(path, body string, changes ...change) answer {
	c.t.Helper()
	return c.do(http.MethodPatch, path, body, append([]change{header("Content-Type", "application/json")}, changes...)...)
}

// post sends a JSON body.
func (c *caller) post(path, body string, changes ...change) answer {
	c.t.Helper()
	return c.do(http.MethodPost, path, body, append([]change{header("Content-Type", "application/json")}, changes...)...)
}

func (c *caller) do(method, path, body string, changes ...change) answer {
	c.t.Helper()
	a, err := c.try(method, path, body, changes...)
	if err != nil {
		c.t.Fatalf("%s %.120s: %v", method, path, err)
	}
	return a
}

// try is do for goroutines, which may not end a test.
func (c *caller) try(method, path, body string, changes ...change) (answer, error) {
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.server.url(path), strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("X-Forwarded-For", c.address)
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	for _, change := range changes {
		change(request)
	}
	response, err := c.server.client().Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	var content bytes.Buffer
	if _, err := copyBounded(&content, response.Body); err != nil {
		return answer{}, err
	}
	a := answer{t: c.t, status: response.StatusCode, header: response.Header, body: content.Bytes()}
	return a, a.check(request)
}

// maxAnswer is more than any test asks for.
const maxAnswer = 64 << 20

func copyBounded(to io.Writer, from io.Reader) (int64, error) {
	return io.Copy(to, io.LimitReader(from, maxAnswer))
}

// check holds the answer against the contract. What the contract says of all paths holds for
// those too that it does not describe.
func (a answer) check(request *http.Request) error {
	router, err := routes()
	if err != nil {
		return err
	}
	for _, name := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
		if _, err := strconv.Atoi(a.header.Get(name)); err != nil {
			return fmt.Errorf("the header %s: %w", name, err)
		}
	}
	if request.Method == http.MethodHead || request.URL.Path == "/openapi.json" || strings.HasPrefix(request.URL.Path, "/docs") {
		return nil
	}
	if a.status == http.StatusNoContent || a.status == http.StatusNotModified {
		if len(a.body) > 0 {
			return fmt.Errorf("a body with %d", a.status)
		}
		return nil
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		return errors.New("Content-Type is " + got)
	}
	if a.header.Get("X-Request-Id") == "" {
		return errors.New("the header x-request-id is missing")
	}
	route, parameters, err := router.FindRoute(request)
	if err != nil {
		return a.checkError()
	}
	return openapi3filter.ValidateResponse(request.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: request, PathParams: parameters, Route: route},
		Status:                 a.status,
		Header:                 a.header,
		Body:                   io.NopCloser(bytes.NewReader(a.body)),
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	})
}

func (a answer) checkError() error {
	spec, err := document()
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(a.body, &value); err != nil {
		return err
	}
	return spec.Components.Schemas["Error"].Value.VisitJSON(value, openapi3.EnableJSONSchema2020())
}

// wants fails the test unless the answer has that status.
func (a answer) wants(status int, reason string) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Errorf("%s: got %d %.300s, want %d", reason, a.status, a.body, status)
	}
	return a
}

// wantsError fails the test unless the answer is that error, word for word.
func (a answer) wantsError(status int, message, reason string) answer {
	a.t.Helper()
	a.wants(status, reason)
	var e openapi.Error
	a.decode(&e)
	if string(e.Error) != message {
		a.t.Errorf("%s: error is %q, want %q", reason, e.Error, message)
	}
	if e.Detail == "" {
		a.t.Errorf("%s: the detail is empty", reason)
	}
	return a
}

func (a answer) decode(target any) {
	a.t.Helper()
	if err := json.Unmarshal(a.body, target); err != nil {
		a.t.Fatalf("decode %.200s: %v", a.body, err)
	}
}

func decoded[T any](a answer) T {
	a.t.Helper()
	var value T
	a.decode(&value)
	return value
}

// onContinue calls back when the server asks for the body.
func onContinue(ctx context.Context, begun func()) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: begun})
}
