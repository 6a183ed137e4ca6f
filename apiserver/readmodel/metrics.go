package readmodel

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics show how much the model holds and how far it is behind. Reading them does not need the mutex, so they also
// work while the model is busy.
type metrics struct {
	// held is the number of objects held, by kind.
	held [kinds]atomic.Int64
	// behind is when the oldest change arrived that readers may not see yet; nil if they see all.
	behind atomic.Pointer[time.Time]
	// If marked is set, readers see all changes that were in the queue at that time once end is joined, and later is when
	// the oldest change since then arrived. The mutex guards marked and end.
	marked bool
	end    mark
	later  atomic.Pointer[time.Time]

	catchUp prometheus.Histogram
}

// register creates the metrics, and registers them unless registerer is nil.
func (m *Model) register(registerer prometheus.Registerer) {
	if registerer != nil {
		registerer.MustRegister(m.contact)
	}
	factory := promauto.With(registerer)
	m.metrics.catchUp = factory.NewHistogram(prometheus.HistogramOpts{
		Name:    "findings_read_model_catch_up_seconds",
		Help:    "Time from the first pending change until readers see it and all changes received with it.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	})
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "findings_read_model_lag_seconds",
		Help: "Age of the oldest change that readers may not see yet; 0 if there is none.",
	}, func() float64 { return m.lag().Seconds() })
	for k := range kinds {
		factory.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "findings_read_model_items", Help: "Objects that the read model holds.",
			ConstLabels: prometheus.Labels{"kind": k.String()},
		}, func() float64 { return float64(m.metrics.held[k].Load()) })
	}
}

// Silence returns which of the kinds has been silent the longest, and for how long.
func (m *Model) Silence(resources ...string) (kind string, silence time.Duration) {
	return m.contact.Silence(resources...)
}

// Kinds returns the watched kinds, by their names in paths of the Kubernetes API.
func (m *Model) Kinds() (resources []string) {
	for k := range kinds {
		resources = append(resources, k.String())
	}
	return resources
}

func (m *Model) lag() time.Duration {
	since := m.metrics.behind.Load()
	if since == nil {
		return 0
	}
	return max(0, m.clock.Since(*since))
}

// fallBehind records that readers do not yet see a change received at that time. It is called twice per change: before
// taking the mutex, so that a wait for the mutex counts, and with the mutex, because updateLag may have run in between.
func (m *Model) fallBehind(received time.Time) {
	if !m.metrics.behind.CompareAndSwap(nil, &received) {
		m.metrics.later.CompareAndSwap(nil, &received)
	}
}

// updateLag records that readers see all changes, or all until some time, because the queue never becomes empty while
// an organization keeps changing a repository. The caller holds the mutex and has just published.
func (m *Model) updateLag() {
	its, all := &m.metrics, !m.joining && m.queue.empty()
	if !all && its.marked && !m.queue.hasJoined(&its.end) {
		return
	}
	if all || its.marked {
		next := its.later.Load()
		if all {
			next = nil
		}
		if since := its.behind.Swap(next); since != nil {
			its.catchUp.Observe(m.clock.Since(*since).Seconds())
		}
	}
	// All changes before this are in the queue: one that waits for the mutex will call fallBehind again.
	its.later.Store(nil)
	its.marked, its.end = its.behind.Load() != nil, m.queue.end()
}
