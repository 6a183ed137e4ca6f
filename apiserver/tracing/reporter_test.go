package tracing

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/appsec-dev/findings-operator/test/harness"
)

// slowCollector takes spans once it is open.
type slowCollector struct{ open chan struct{} }

func (c slowCollector) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	<-c.open
	return nil
}

func (slowCollector) Shutdown(context.Context) error { return nil }

// Each span is counted: as sent, or as lost where the queue was full.
func TestSpansThatFindNoRoomAreCountedAsLost(t *testing.T) {
	collector := slowCollector{make(chan struct{})}
	r := newReporter(collector, logr.Discard(), nil)
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(newQueue(r)))
	const surplus = 1000
	for range maxQueue + surplus {
		_, span := provider.Tracer("").Start(t.Context(), "")
		span.End()
	}
	close(collector.open)
	harness.Must(t, provider.Shutdown(t.Context()))
	for outcome, want := range map[string]float64{sent: maxQueue, lost: surplus} {
		harness.Same(t, outcome, want, testutil.ToFloat64(r.spans.WithLabelValues(outcome)))
	}
}
