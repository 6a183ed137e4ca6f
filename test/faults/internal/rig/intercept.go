package rig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// Verdict decides how a request is handled.
type Verdict struct {
	// Status is the answer in the API server's place; 0 forwards the request.
	Status int
	// RetryAfter is sent along with Status, in seconds; 0 for none.
	RetryAfter int
	// Before, if set, delays the request until it is closed, After its answer, and Body the
	// answer's body: with Body, a watch starts and then stalls.
	Before, After, Body <-chan struct{}
}

// Rule decides on a request. It is called concurrently, and must not read the body.
type Rule func(*http.Request) Verdict

// Interceptor is a proxy in front of the API server that uses its certificate and decides on each
// request. It forwards credentials, so the API server still authenticates requests.
type Interceptor struct {
	Address string

	server *http.Server
	proxy  *httputil.ReverseProxy
	rule   atomic.Pointer[Rule]
	// Intercepted counts the requests that a rule did not simply forward.
	Intercepted atomic.Int64
}

// intercept starts an Interceptor in front of the control plane's API server.
func intercept(p *harness.ControlPlane) (*Interceptor, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for intercepted requests: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.Admin.CAData)
	target := &url.URL{Scheme: "https", Host: p.APIServerAddress}
	quiet := log.New(io.Discard, "", 0)
	i := &Interceptor{Address: listener.Addr().String(), proxy: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1, // watches pass event by event
		ErrorLog:      quiet,
		// If the API server is down, cut the connection instead of answering.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
		},
	}}
	i.server = &http.Server{
		Handler: i, ErrorLog: quiet, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{p.Certificate}, NextProtos: []string{"h2", "http/1.1"},
			MinVersion: tls.VersionTLS12},
	}
	go i.server.ServeTLS(listener, "", "") //nolint:errcheck // it ends by Close
	return i, nil
}

// Use sets the rule for further requests; nil forwards everything.
func (i *Interceptor) Use(rule Rule) {
	if rule == nil {
		i.rule.Store(nil)
		return
	}
	i.rule.Store(&rule)
}

// Close ends the proxy and open requests.
func (i *Interceptor) Close() {
	_ = i.server.Close() // nothing is left to lose
}

// ServeHTTP handles a request as the rule decides.
func (i *Interceptor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var verdict Verdict
	if rule := i.rule.Load(); rule != nil {
		verdict = (*rule)(r)
	}
	if verdict != (Verdict{}) {
		i.Intercepted.Add(1)
	}
	if verdict.Before != nil && !waitFor(r.Context(), verdict.Before) {
		panic(http.ErrAbortHandler)
	}
	if verdict.Status != 0 {
		refuse(w, verdict)
		return
	}
	if verdict.After != nil || verdict.Body != nil {
		w = &held{ResponseWriter: w, header: verdict.After, body: verdict.Body, ctx: r.Context()}
	}
	i.proxy.ServeHTTP(w, r)
}

func waitFor(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// refuse answers with a Status, as the API server does.
func refuse(w http.ResponseWriter, v Verdict) {
	body, err := json.Marshal(&metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(v.Status), //nolint:gosec // a status
		Message: "refused by the test: " + http.StatusText(v.Status),
	})
	if err != nil {
		panic(err) // a value of ours always encodes
	}
	w.Header().Set("Content-Type", "application/json")
	if v.RetryAfter > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(v.RetryAfter))
	}
	w.WriteHeader(v.Status)
	_, _ = w.Write(body) // the client may be gone
}

// held delays an answer or its body.
type held struct {
	http.ResponseWriter
	header, body <-chan struct{}
	ctx          context.Context //nolint:containedctx // it is the request's
}

// WriteHeader waits if the whole answer is delayed.
func (h *held) WriteHeader(status int) {
	if h.header != nil && !waitFor(h.ctx, h.header) {
		panic(http.ErrAbortHandler)
	}
	h.ResponseWriter.WriteHeader(status)
}

// Write waits if the body is delayed.
func (h *held) Write(content []byte) (int, error) {
	if h.body != nil && !waitFor(h.ctx, h.body) {
		panic(http.ErrAbortHandler)
	}
	return h.ResponseWriter.Write(content)
}

// Flush flushes the underlying writer.
func (h *held) Flush() {
	if flusher, ok := h.ResponseWriter.(http.Flusher); ok {
		flusher.Flush()
	}
}

// Of reports whether a request has that method and resource ("findings", "findings/status"); the
// method "WATCH" stands for a watch.
func Of(r *http.Request, method, resource string) bool {
	if method == "WATCH" {
		if r.Method != http.MethodGet || !IsWatch(r) {
			return false
		}
	} else if r.Method != method {
		return false
	}
	return ResourceOf(r) == resource
}

// IsWatch reports whether a request starts a watch.
func IsWatch(r *http.Request) bool {
	value := r.URL.Query().Get("watch")
	return value == "1" || value == "true"
}

// ResourceOf returns the resource of this project in a request's path, with its subresource; "" for
// another API.
func ResourceOf(r *http.Request) string {
	rest, ok := strings.CutPrefix(r.URL.Path, "/apis/appsec.dev/v1alpha1/")
	if !ok {
		return ""
	}
	parts := strings.Split(rest, "/")
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return parts[0] + "/" + parts[2]
	}
	return parts[0]
}
