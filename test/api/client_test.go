package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/test/apiclient"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// caller calls the REST API with a key and checks each answer against the contract.
type caller struct {
	t      testing.TB
	server *server
	token  string // empty: no token is sent
	// address is the caller's address according to a proxy that the server trusts. It is unique, so
	// that tests do not share a rate limit.
	address string
}

var addresses atomic.Uint32

// newCaller returns a caller with that token.
func newCaller(t testing.TB, s *server, token string) *caller {
	n := addresses.Add(1)
	address := netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
	return &caller{t: t, server: s, token: token, address: address.String()}
}

// on returns the same caller at another server.
func (c *caller) on(s *server) *caller {
	other := *c
	other.server = s
	return &other
}

// answer is a response.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
	// reason is that of the last wants.
	reason string
}

// change alters a request before it is sent.
type change = apiclient.Change

func header(name, value string) change { return apiclient.Header(name, value) }

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

// try is do for goroutines, which must not end a test: without a response, the answer's status is 0. A body is sent
// without a Content-Type unless a change sets it.
func (c *caller) try(method, path, body string, changes ...change) (answer, error) {
	client := apiclient.Client{Base: c.server.url(""), Token: c.token}
	changes = append([]change{header("X-Forwarded-For", c.address), apiclient.Without("Content-Type")}, changes...)
	got, err := client.Do(c.t.Context(), method, path, body, changes...)
	if got == nil {
		return answer{t: c.t}, err
	}
	return answer{t: c.t, status: got.Status, header: got.Header, body: got.Body}, err
}

// wants fails the test unless the answer has that status.
func (a answer) wants(status int, reason string) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Errorf("%s: got %d %.300s, want %d", reason, a.status, a.body, status)
	}
	a.reason = reason
	return a
}

// says fails the test unless the answer contains all of these texts.
func (a answer) says(words ...string) answer {
	a.t.Helper()
	for _, word := range words {
		if !strings.Contains(string(a.body), word) {
			a.t.Errorf("%s: the answer is %s, want %q in it", a.reason, a.body, word)
		}
	}
	return a
}

// wantsError fails the test unless the answer is exactly that error.
func (a answer) wantsError(status int, message, reason string) answer {
	a.t.Helper()
	a.wants(status, reason)
	var e openapi.Error
	a.decode(&e)
	harness.Same(a.t, reason+": error", message, string(e.Error))
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

// hold sends a request without its body, which the test writes later, and returns when the server asks for it.
func (c *caller) hold(method, path string, changes ...change) (body *io.PipeWriter, answered <-chan answer) {
	c.t.Helper()
	begun, done := make(chan struct{}), make(chan answer, 1)
	reader, body := io.Pipe()
	trace := &httptrace.ClientTrace{Got100Continue: func() { close(begun) }}
	changes = append(changes, func(r *http.Request) {
		r.Body, r.GetBody, r.ContentLength = reader, nil, -1
		r.Header.Set("Expect", "100-continue") // the server answers it when the handler reads the body
		*r = *r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
	})
	go func() {
		a, err := c.try(method, path, "", changes...)
		harness.NoError(c.t, method+" "+path, err)
		done <- a
	}()
	select {
	case <-begun:
	case a := <-done:
		c.t.Fatalf("%s %s is over before its body came: %d %s", method, path, a.status, a.body)
	}
	return body, done
}
