package plugin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// request is a request that a command sent to the API server.
type request struct {
	method, path, body string
	query              url.Values
	// items is the number of items in the answer.
	items int
}

// gateway is a proxy between a command and the real API server that records requests.
type gateway struct {
	mu       sync.Mutex
	requests []*request
	// before, if set, sees each request first; it may answer in the API server's place.
	before func(w http.ResponseWriter, r *http.Request) (answered bool)
}

type requestKey struct{}

// through returns a person who reaches the API server with the rights of config, through the gateway.
func (g *gateway) through(o *organization, config *rest.Config) *person {
	o.Helper()
	target, err := url.Parse(config.Host)
	harness.Must(o, err)
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config)) // the command brings its own token
	harness.Must(o, err)
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		ModifyResponse: g.count,
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = g.note(o, r)
		if g.before == nil || !g.before(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	o.Cleanup(server.Close)
	return o.as(&rest.Config{Host: server.URL, BearerToken: config.BearerToken, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}})
}

func (g *gateway) note(o *organization, r *http.Request) *http.Request {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		o.Error(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.Header.Del("Accept-Encoding") // so that answers can be read
	noted := &request{method: r.Method, path: r.URL.Path, query: r.URL.Query(), body: string(body)}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests = append(g.requests, noted)
	return r.WithContext(context.WithValue(r.Context(), requestKey{}, noted))
}

// count records how many objects a list has.
func (g *gateway) count(response *http.Response) error {
	noted, _ := response.Request.Context().Value(requestKey{}).(*request)
	if noted == nil || noted.method != http.MethodGet {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(body, &list) == nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		noted.items = len(list.Items)
	}
	return nil
}

// sent returns the requests with that method whose path ends with the suffix.
func (g *gateway) sent(method, suffix string) []*request {
	g.mu.Lock()
	defer g.mu.Unlock()
	var sent []*request
	for _, r := range g.requests {
		if r.method == method && strings.HasSuffix(r.path, suffix) {
			sent = append(sent, r)
		}
	}
	return sent
}

func listed(requests []*request) int {
	items := 0
	for _, r := range requests {
		items += r.items
	}
	return items
}
