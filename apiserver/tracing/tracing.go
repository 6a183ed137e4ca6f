// Package tracing traces requests through the facade and sends the spans to an OpenTelemetry collector. Except
// for the request's id, no attribute contains data sent by a client: no query, header, body or path.
package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// The bounds of the queue for the collector. A span is dropped if the queue is full: no request ever waits for
// a collector.
const (
	maxQueue      = 4096
	maxBatch      = 512
	batchInterval = 2 * time.Second
	exportTimeout = 5 * time.Second
)

const (
	instrumentation = "github.com/appsec-dev/findings-operator/apiserver"
	serviceName     = "findings-api"
	defaultPath     = "/v1/traces"
)

// Options of a Tracer.
type Options struct {
	// Endpoint is the URL of a collector that accepts OTLP over HTTP. If empty, nothing is traced.
	Endpoint string
	// SampleRatio is the share of requests without a sampling decision that is traced.
	SampleRatio float64
	// Log gets one line when the collector becomes unreachable, and one when it is reachable again.
	Log logr.Logger
	// Registerer registers the metrics; may be nil.
	Registerer prometheus.Registerer
}

// CheckEndpoint returns an error if the URL of a collector is invalid. It must not contain credentials, because
// arguments are widely visible.
func CheckEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	parsed, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return errors.New("must be a URL") // the error of url.Parse repeats it
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return errors.New("must begin with http:// or https://")
	case parsed.Hostname() == "":
		return errors.New("must name a host")
	case parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "":
		return errors.New("must have no credentials, query or fragment")
	}
	return nil
}

// Tracer creates the spans of requests. A nil Tracer creates none.
type Tracer struct {
	// tracer is nil if nothing is traced.
	tracer   trace.Tracer
	shutdown func(context.Context) error
}

// New returns a Tracer. It does not connect yet.
func New(ctx context.Context, options Options) (*Tracer, error) {
	if options.Endpoint == "" {
		return &Tracer{shutdown: func(context.Context) error { return nil }}, nil
	}
	if err := CheckEndpoint(options.Endpoint); err != nil {
		return nil, fmt.Errorf("the endpoint of traces %w", err)
	}
	endpoint, err := url.Parse(options.Endpoint)
	if err != nil {
		return nil, err
	}
	endpoint.Path = cmp.Or(strings.TrimSuffix(endpoint.Path, "/"), defaultPath)
	sender, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint.String()),
		otlptracehttp.WithTimeout(exportTimeout))
	if err != nil {
		return nil, fmt.Errorf("make the exporter of traces: %w", err)
	}
	instance, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(newReporter(sender, options.Log, options.Registerer),
			sdktrace.WithMaxQueueSize(maxQueue), sdktrace.WithMaxExportBatchSize(maxBatch),
			sdktrace.WithBatchTimeout(batchInterval), sdktrace.WithExportTimeout(exportTimeout)),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(options.SampleRatio))),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", serviceName), attribute.String("service.instance.id", instance))),
	)
	return &Tracer{tracer: provider.Tracer(instrumentation), shutdown: provider.Shutdown}, nil
}

// Shutdown sends the queued spans. It returns when the context ends at the latest.
func (t *Tracer) Shutdown(ctx context.Context) error { return t.shutdown(ctx) }

// Request starts the span of a request, within the trace in its traceparent. It ignores tracestate and baggage,
// whose content a client can choose freely.
func (t *Tracer) Request(r *http.Request, method, route, requestID string) (context.Context, trace.Span) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	if parent := trace.SpanContextFromContext(ctx); parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent.WithTraceState(trace.TraceState{}))
	}
	if t == nil || t.tracer == nil {
		return ctx, noop.Span{}
	}
	return t.tracer.Start(ctx, strings.TrimSpace(method+" "+route),
		trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(
			attribute.String("http.request.method", method),
			attribute.String("http.route", route),
			attribute.String("findings.request_id", requestID)))
}

// Answered records the status of a response.
func Answered(span trace.Span, status int) {
	span.SetAttributes(attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
}

// Start starts a span within the span of the context. It is recorded only if that span is.
func Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	within := trace.SpanFromContext(ctx)
	if !within.IsRecording() {
		return ctx, noop.Span{}
	}
	return within.TracerProvider().Tracer(instrumentation).Start(ctx, name, options...)
}

// Do runs the function within a span.
func Do[T, E any](ctx context.Context, name string, do func() (T, E)) (T, E) {
	_, span := Start(ctx, name)
	defer span.End()
	return do()
}

// ID returns the id of the context's trace; empty without a trace.
func ID(ctx context.Context) string {
	if id := trace.SpanContextFromContext(ctx).TraceID(); id.IsValid() {
		return id.String()
	}
	return ""
}
