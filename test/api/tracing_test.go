package api_test

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/apiserver"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
	"github.com/appsec-dev/findings-operator/test/testenv"
)

// receiver receives traces as a collector does: OTLP in protobuf over HTTP.
type receiver struct {
	URL   string
	mu    sync.Mutex
	spans []*tracev1.Span
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.URL = harness.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if err := r.take(request); err != nil || request.URL.Path != "/v1/traces" {
			t.Errorf("an export to %s: %v", request.URL.Path, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	return r
}

func (r *receiver) take(request *http.Request) error {
	body := io.Reader(request.Body)
	if request.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(request.Body); err != nil {
			return err
		}
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	export := &collector.ExportTraceServiceRequest{}
	if err := proto.Unmarshal(content, export); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range export.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			r.spans = append(r.spans, scope.Spans...)
		}
	}
	return nil
}

// trace returns the received spans of a trace, and their names, each after that of its parent.
func (r *receiver) trace(id string) (paths []string, spans []*tracev1.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := map[string]string{}
	for _, span := range r.spans {
		if hex.EncodeToString(span.TraceId) == id {
			spans = append(spans, span)
			names[string(span.SpanId)] = span.Name
		}
	}
	for _, span := range spans {
		path := span.Name
		if parent := names[string(span.ParentSpanId)]; parent != "" {
			path = parent + " > " + path
		}
		for _, a := range span.Attributes {
			if a.Key == "findings.attempt" {
				path += fmt.Sprint(" #", a.Value.GetIntValue())
			}
		}
		if span.Status.GetCode() == tracev1.Status_STATUS_CODE_ERROR {
			path += " failed: " + span.Status.Message
		}
		paths = append(paths, path)
	}
	return paths, spans
}

const (
	givenTrace = "0af7651916cd43dd8448eb211c80319c"
	givenSpan  = "b7ad6b7169203331"
)

// A trace that a client has begun continues from the request to each attempt of the patch.
func TestATraceLeadsFromTheRequestToThePatch(t *testing.T) {
	r, log := newReceiver(t), &harness.Buffer{}
	o := newOrganization(t)
	f := builder.Finding("f-1").In(o.namespace).Build()
	var once sync.Once // another writer changes the finding just before the first patch arrives
	s := ownServer(t, apiserver.Options{
		TraceEndpoint: r.URL, TraceSampleRatio: 0, Log: slog.New(slog.NewJSONHandler(log, nil)),
	}, func(config *rest.Config) {
		harness.Between(config, func(next http.RoundTripper, request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/findings/") {
				patch := testenv.MergePatch(`{"metadata":{"labels":{"a":"b"}}}`)
				once.Do(func() { harness.NoError(t, "patch", env.Client.Patch(t.Context(), f, patch)) })
			}
			return next.RoundTrip(request)
		})
	})
	o.server = s
	c := o.key("ci")
	o.finding(c, builder.Finding("f-1"))
	c.get("/v1/findings").wants(200, "a request that nobody asked to trace")
	c.patch("/v1/findings/f-1?x=from-the-query", `{"user_status":"muted"}`,
		header("Traceparent", "00-"+givenTrace+"-"+givenSpan+"-01"), header("Tracestate", "from=the-header"),
		header("X-Request-Id", "named-by-the-proxy")).wants(200, "a decision")
	harness.Must(t, s.stop()) // stop sends the queued spans
	paths, spans := r.trace(givenTrace)
	const root = "PATCH /v1/findings/{id}"
	NewWithT(t).Expect(paths).To(ConsistOf(
		root,
		root+" > authenticate",
		root+" > read model: finding",
		root+" > kubernetes: patch finding #1 failed: Conflict",
		root+" > kubernetes: get finding",
		root+" > kubernetes: patch finding #2",
		root+" > read model: apply finding",
	))
	text := ""
	for _, span := range spans {
		text += prototext.Format(span)
		if span.Name == root && hex.EncodeToString(span.ParentSpanId) != givenSpan {
			t.Errorf("the request's span does not belong to the client's: %s", hex.EncodeToString(span.ParentSpanId))
		}
	}
	harness.Contains(t, "the spans", text, "named-by-the-proxy", "http.response.status_code", "200", "http.route")
	for _, secret := range append(strings.Split(c.token, "."), "from-the-query", "the-header", "muted", "f-1") {
		if strings.Contains(text, secret) {
			t.Errorf("a span contains %q", secret)
		}
	}
	harness.Contains(t, "the log", log.String(), `"requestID":"named-by-the-proxy"`, `"traceID":"`+givenTrace+`"`)
	r.mu.Lock()
	defer r.mu.Unlock()
	harness.Same(t, "spans of requests that nobody asked to trace", 0, len(r.spans)-len(spans))
}

// A collector that accepts connections and never answers delays neither requests nor, for long, the
// shutdown.
func TestNobodyWaitsForTheCollector(t *testing.T) {
	t.Parallel() // it mostly waits
	begun, release := make(chan struct{}, 1024), make(chan struct{})
	stuck := harness.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-release
	}))
	t.Cleanup(func() { close(release) })
	s := ownServer(t, apiserver.Options{TraceEndpoint: stuck, TraceSampleRatio: 1})
	o := newOrganization(t).on(s)
	c := o.key("ci")
	o.finding(c, builder.Finding("f-1"))
	o.limit(50_000)
	select {
	case <-begun:
	case <-time.After(patience):
		t.Fatal("nothing was sent")
	}
	// More spans than the queue holds.
	late := 0
	for range 2000 {
		start := time.Now()
		c.get("/v1/findings")
		if time.Since(start) > 4*time.Second {
			late++
		}
	}
	// An export times out after 5 s; a request that waited for it would take almost as long, and the queue is full
	// several times.
	if late > 2 {
		t.Errorf("%d requests took more than 4 s", late)
	}
	harness.Eventually(t, func(g Gomega) {
		_, metrics, err := s.health(t.Context(), "/metrics")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(metrics).To(MatchRegexp(`findings_api_trace_spans_total\{outcome="lost"\} [1-9]`))
	})
	stopping := time.Now()
	harness.NoError(t, "stop", s.stop())
	if took := time.Since(stopping); took > 20*time.Second {
		t.Errorf("the server stopped after %s", took)
	}
}
