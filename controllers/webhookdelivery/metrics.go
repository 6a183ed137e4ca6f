package webhookdelivery

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// attemptsCounter counts attempts by how they ended. It names no endpoint: there may be any
// number of them.
type attemptsCounter struct{ *prometheus.CounterVec }

// attemptsMade belongs to the process, as the registry does.
var attemptsMade = newAttemptsCounter(metrics.Registry)

func newAttemptsCounter(registry prometheus.Registerer) attemptsCounter {
	c := attemptsCounter{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "findings_webhook_attempts_total",
		Help: "Attempts to deliver a webhook that have ended, by outcome.",
	}, []string{"outcome"})}
	registry.MustRegister(c)
	for _, outcome := range []v1alpha1.WebhookAttemptOutcome{
		v1alpha1.WebhookAttemptSucceeded, v1alpha1.WebhookAttemptFailed, v1alpha1.WebhookAttemptUnknown,
	} {
		c.WithLabelValues(label(outcome)) // 0 rather than absent
	}
	return c
}

func (c attemptsCounter) count(outcome v1alpha1.WebhookAttemptOutcome) {
	c.WithLabelValues(label(outcome)).Inc()
}

func label(outcome v1alpha1.WebhookAttemptOutcome) string { return strings.ToLower(string(outcome)) }
