package retention

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// retired counts removed objects. It is process-wide, like the registry.
var retired = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
	Name: "findings_retired_total",
	Help: "Objects removed because their retention period is over, by kind.",
}, []string{"kind"})

// notRemoved counts removals that the API server refused or that failed with another error.
var notRemoved = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
	Name: "findings_retirements_refused_total",
	Help: "Attempts to remove an object that the API server refused or answered with another error, by kind.",
}, []string{"kind"})

func init() {
	for _, s := range []shelf{closedFindings, finishedScans, idleReviews, finishedDeliveries, finishedOperations} {
		createUpFront(s.kind())
	}
	createUpFront(issueKind)
	createUpFront(leaseKind)
}

// createUpFront exports the kind's counters as 0: rate() misses the first increment of a new series.
func createUpFront(kind string) {
	retired.WithLabelValues(kind)
	notRemoved.WithLabelValues(kind)
}
