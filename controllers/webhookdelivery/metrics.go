package webhookdelivery

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// attemptsCounter counts attempts by outcome. It has no label for the endpoint, because the number of endpoints is
// unbounded.
type attemptsCounter struct{ *prometheus.CounterVec }

// attemptsMade is process-wide, like the registry.
var attemptsMade = newAttemptsCounter(metrics.Registry)

func newAttemptsCounter(registry prometheus.Registerer) attemptsCounter {
	c := attemptsCounter{promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "findings_webhook_attempts_total",
		Help: "Attempts to deliver a webhook that have ended, by outcome.",
	}, []string{"outcome"})}
	for _, outcome := range []v1alpha1.WebhookAttemptOutcome{
		v1alpha1.WebhookAttemptSucceeded, v1alpha1.WebhookAttemptFailed, v1alpha1.WebhookAttemptUnknown,
	} {
		c.WithLabelValues(label(outcome)) // created up front: rate() misses the first increment of a new series
	}
	return c
}

func (c attemptsCounter) count(outcome v1alpha1.WebhookAttemptOutcome) {
	c.WithLabelValues(label(outcome)).Inc()
}

func label(outcome v1alpha1.WebhookAttemptOutcome) string { return strings.ToLower(string(outcome)) }
