package webhookendpoint

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// backlogs holds the last observed backlog of each endpoint and sums them up at each scrape. No metric has a label for
// the endpoint, because the number of endpoints is unbounded.
type backlogs struct {
	now func() time.Time

	mu        sync.Mutex
	endpoints map[types.NamespacedName]endpointBacklog
}

type endpointBacklog struct {
	backlog
	disabled bool
}

// theBacklog is process-wide, like the registry.
var theBacklog = newBacklogs(metrics.Registry, time.Now)

func newBacklogs(registry prometheus.Registerer, now func() time.Time) *backlogs {
	b := &backlogs{now: now, endpoints: map[types.NamespacedName]endpointBacklog{}}
	factory := promauto.With(registry)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "findings_webhook_deliveries_pending",
		Help: "Pending webhook deliveries, including those to disabled endpoints, but not to those that are being deleted.",
	}, b.pending)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "findings_webhook_oldest_pending_seconds",
		Help: "Age of the oldest webhook delivery that waits for an endpoint that is not disabled; 0 if there is none.",
	}, b.oldestAge)
	return b
}

func (b *backlogs) note(endpoint types.NamespacedName, found backlog, disabled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if found.pending == 0 {
		delete(b.endpoints, endpoint)
		return
	}
	b.endpoints[endpoint] = endpointBacklog{found, disabled}
}

func (b *backlogs) forget(endpoint types.NamespacedName) { b.note(endpoint, backlog{}, false) }

func (b *backlogs) pending() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := 0
	for _, e := range b.endpoints {
		sum += e.backlog.pending
	}
	return float64(sum)
}

func (b *backlogs) oldestAge() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, age := b.now(), time.Duration(0)
	for _, e := range b.endpoints {
		if !e.disabled {
			age = max(age, now.Sub(e.oldest))
		}
	}
	return age.Seconds()
}
