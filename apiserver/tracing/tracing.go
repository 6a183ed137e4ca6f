// Package tracing traces requests through the facade and sends the spans to an OpenTelemetry
// collector. Besides the request's id no attribute holds what a client sent: no query,
// no header, no body, no path.
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

// The bounds of what waits for the collector. A span that finds the queue full is dropped: no
// request ever waits for a collector.
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
	// Endpoint is the URL of a collector that takes OTLP over HTTP. Empty: nothing is traced.
	Endpoint string
	// SampleRatio of the requests that come without a decision is traced.
	SampleRatio float64
	// Log gets a line when the collector cannot be reached, and one when it can again.
	Log logr.Logger
	// Registerer takes the metrics; nil: nobody does.
	Registerer prometheus.Registerer
}

// CheckEndpoint says what is wrong with the URL of a collector. Credentials have no place in
// it, because arguments are shown to many.
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

// Tracer makes the spans of requests. A nil one makes none.
type Tracer struct {
	// tracer is nil where nothing is traced.
	tracer   trace.Tracer
	shutdown func(context.Context) error
}

// New returns a Tracer. It reaches for nothing yet.
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
	reporting, err := newReporter(sender, options.Log, options.Registerer)
	if err != nil {
		return nil, err
	}
	instance, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(reporting,
			sdktrace.WithMaxQueueSize(maxQueue), sdktrace.WithMaxExportBatchSize(maxBatch),
			sdktrace.WithBatchTimeout(batchInterval), sdktrace.WithExportTimeout(exportTimeout)),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(options.SampleRatio))),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", serviceName), attribute.String("service.instance.id", instance))),
	)
	return &Tracer{tracer: provider.Tracer(instrumentation), shutdown: provider.Shutdown}, nil
}

// Shutdown sends what still waits. It ends with the context at the latest.
func (t *Tracer) Shutdown(ctx context.Context) error { return t.shutdown(ctx) }

// Request begins the span of a request, within the trace that its traceparent names. Of the
// rest that such headers may carry, tracestate and baggage, nothing is taken: a client makes it up.
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

// Answered notes what a request was answered with.
func Answered(span trace.Span, status int) {
	span.SetAttributes(attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
}

// Start begins a span within the one of the context. Where that is not traced, neither is it.
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

// ID is the name of the trace that the context is in; empty where it is in none.
func ID(ctx context.Context) string {
	if id := trace.SpanContextFromContext(ctx).TraceID(); id.IsValid() {
		return id.String()
	}
	return ""
}
