package kube

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Hearing knows when the API server last sent anything of each kind: a list, the start of a watch, an event or
// a bookmark, which comes about once a minute where nothing changes. It is safe for concurrent use.
type Hearing struct {
	began time.Time
	last  map[string]*atomic.Pointer[time.Time]
}

// NewHearing returns one that has heard nothing.
func NewHearing() *Hearing {
	h := &Hearing{began: time.Now(), last: map[string]*atomic.Pointer[time.Time]{}}
	for _, kind := range kinds {
		h.last[kind.Resource] = &atomic.Pointer[time.Time]{}
	}
	return h
}

// Of returns the Heard of a kind's ListWatch.
func (h *Hearing) Of(kind Kind) func() {
	last := h.last[kind.Resource]
	last.Store(&h.began)
	return func() {
		now := time.Now()
		last.Store(&now)
	}
}

var heardSeconds = prometheus.NewDesc("findings_controller_heard_seconds",
	"Time since the API server last sent anything of a kind that is watched: a list, the start of a watch, a change or a bookmark.",
	[]string{"kind"}, nil)

var _ prometheus.Collector = (*Hearing)(nil)

// Describe implements prometheus.Collector.
func (h *Hearing) Describe(to chan<- *prometheus.Desc) { to <- heardSeconds }

// Collect implements prometheus.Collector. A kind that nobody watches is left out.
func (h *Hearing) Collect(to chan<- prometheus.Metric) {
	for resource, last := range h.last {
		if at := last.Load(); at != nil {
			to <- prometheus.MustNewConstMetric(heardSeconds, prometheus.GaugeValue, max(0, time.Since(*at).Seconds()), resource)
		}
	}
}
