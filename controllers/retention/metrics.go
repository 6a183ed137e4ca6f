package retention

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// retired counts what was retired. It belongs to the process, as the registry does.
var retired = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "findings_retired_total",
	Help: "Objects removed because the organization keeps them no longer, by kind.",
}, []string{"kind"})

// init fills the registry of controller-runtime, which is the process's.
func init() {
	metrics.Registry.MustRegister(retired)
	for _, s := range []shelf{closedFindings, finishedScans, finishedDeliveries, finishedOperations} {
		retired.WithLabelValues(s.kind()) // shown as 0 rather than as missing
	}
	retired.WithLabelValues(leaseKind)
}
