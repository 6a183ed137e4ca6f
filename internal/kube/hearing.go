package kube

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// Hearing records when the API server last sent anything about each kind: a list, the start of a watch, an event or
// a bookmark, which comes at least every two minutes where nothing changes. It is safe for concurrent use.
type Hearing struct {
	clock clock.PassiveClock
	desc  *prometheus.Desc
	kinds map[string]*heard
}

// heard holds when something last arrived about a kind; nil before the first time. watched is when Watch was first
// called.
type heard struct {
	watched, last atomic.Pointer[time.Time]
}

// NewHearing returns an empty Hearing. As a collector it exposes the silence of each kind as the metric name, before
// anything has arrived the time since Watch.
func NewHearing(metric string, clock clock.PassiveClock) *Hearing {
	h := &Hearing{clock: clock, kinds: map[string]*heard{}, desc: prometheus.NewDesc(metric,
		"Time since the API server last sent anything of a kind: a list, the start of a watch, a change or a bookmark; "+
			"before the first, since the process began to watch the kind.",
		[]string{"kind"}, nil)}
	for _, kind := range kinds {
		h.kinds[kind.Resource] = &heard{}
	}
	return h
}

// Watch records that a kind is watched from now on. Call the returned function whenever something about it arrives.
func (h *Hearing) Watch(resource string) (hear func() time.Time) {
	kind := h.kinds[resource]
	begin := h.clock.Now()
	kind.watched.CompareAndSwap(nil, &begin)
	return func() time.Time {
		now := h.clock.Now()
		kind.last.Store(&now)
		return now
	}
}

// Silence returns the kind that has been silent for the longest, and for how long: math.MaxInt64 if nothing has arrived
// about it yet.
func (h *Hearing) Silence(resources ...string) (resource string, silence time.Duration) {
	for _, r := range resources {
		if its := h.kinds[r].silence(h.clock); its >= silence {
			resource, silence = r, its
		}
	}
	return resource, silence
}

func (k *heard) silence(clock clock.PassiveClock) time.Duration {
	at := k.last.Load()
	if at == nil {
		return math.MaxInt64
	}
	return max(0, clock.Since(*at))
}

var _ prometheus.Collector = (*Hearing)(nil)

// Describe implements prometheus.Collector.
func (h *Hearing) Describe(to chan<- *prometheus.Desc) { to <- h.desc }

// Collect implements prometheus.Collector. Kinds that are not watched are left out.
func (h *Hearing) Collect(to chan<- prometheus.Metric) {
	for resource, kind := range h.kinds {
		if begin := kind.watched.Load(); begin != nil {
			silence := min(kind.silence(h.clock), h.clock.Since(*begin))
			to <- prometheus.MustNewConstMetric(h.desc, prometheus.GaugeValue, silence.Seconds(), resource)
		}
	}
}
