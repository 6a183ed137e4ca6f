package tracing

import (
	"context"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// reporter logs and counts how an exporter does. It logs only changes between success and failure. One batch is
// exported at a time.
type reporter struct {
	sdktrace.SpanExporter
	log     logr.Logger
	spans   *prometheus.CounterVec
	failing bool
}

// The outcomes of spans.
const (
	sent = "sent"
	lost = "lost"
)

func newReporter(exporter sdktrace.SpanExporter, log logr.Logger, registerer prometheus.Registerer) *reporter {
	r := &reporter{
		SpanExporter: exporter,
		log:          log,
		spans: promauto.With(registerer).NewCounterVec(prometheus.CounterOpts{
			Name: "findings_api_trace_spans_total",
			Help: "Spans that the collector of traces has accepted (sent), or not (lost).",
		}, []string{"outcome"}),
	}
	for _, outcome := range []string{sent, lost} {
		r.spans.WithLabelValues(outcome)
	}
	return r
}

// ExportSpans sends a batch. It returns no error, because the SDK would log each one.
func (r *reporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := r.SpanExporter.ExportSpans(ctx, spans)
	outcome := sent
	if err != nil {
		outcome = lost
	}
	r.spans.WithLabelValues(outcome).Add(float64(len(spans)))
	switch {
	case err != nil && !r.failing:
		r.log.Error(err, "Traces cannot be sent and are lost; requests do not wait for them")
	case err == nil && r.failing:
		r.log.Info("Traces are sent again")
	}
	r.failing = err != nil
	return nil
}
