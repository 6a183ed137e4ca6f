package tracing

import (
	"context"
	"sync/atomic"

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
	// queued is how many spans wait or are being sent.
	queued atomic.Int64
}

// queue bounds the spans that wait, and counts those that find no room as lost. The processor behind it has as much
// room, so it drops none uncounted.
type queue struct {
	sdktrace.SpanProcessor
	reporter *reporter
}

func newQueue(r *reporter) queue {
	return queue{reporter: r, SpanProcessor: sdktrace.NewBatchSpanProcessor(r,
		sdktrace.WithMaxQueueSize(maxQueue), sdktrace.WithMaxExportBatchSize(maxBatch),
		sdktrace.WithBatchTimeout(batchInterval), sdktrace.WithExportTimeout(exportTimeout))}
}

// OnEnd queues a span, or drops it.
func (q queue) OnEnd(span sdktrace.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	if q.reporter.queued.Add(1) > maxQueue {
		q.reporter.queued.Add(-1)
		q.reporter.spans.WithLabelValues(lost).Inc()
		return
	}
	q.SpanProcessor.OnEnd(span)
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
			Help: "Spans that were sent to the collector of traces (sent), or refused by it or dropped before (lost).",
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
	r.queued.Add(-int64(len(spans)))
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
