package kube

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// Contact records when the API server last sent anything about each kind: a list, the start of a watch, an event, or a
// bookmark, which arrives at least every two minutes without changes. It is safe for concurrent use.
type Contact struct {
	clock clock.PassiveClock
	desc  *prometheus.Desc
	kinds map[string]*lastContact
}

// lastContact holds when something last arrived about a kind; nil before the first time. watched is when Watch was
// first called.
type lastContact struct {
	watched, last atomic.Pointer[time.Time]
}

// NewContact returns an empty Contact. As a collector it exposes the silence of each kind under the metric name. Until
// anything has arrived, that is the time since Watch.
func NewContact(metric string, clock clock.PassiveClock) *Contact {
	c := &Contact{clock: clock, kinds: map[string]*lastContact{}, desc: prometheus.NewDesc(metric,
		"Time since the API server last sent anything of a kind: a list, the start of a watch, a change or a bookmark; "+
			"before the first, since the process began to watch the kind.",
		[]string{"kind"}, nil)}
	for _, kind := range kinds {
		c.kinds[kind.Resource] = &lastContact{}
	}
	return c
}

// Watch records that a kind is watched from now on. Call the returned function whenever something about it arrives.
func (c *Contact) Watch(resource string) (record func() time.Time) {
	kind := c.kinds[resource]
	begin := c.clock.Now()
	kind.watched.CompareAndSwap(nil, &begin)
	return func() time.Time {
		now := c.clock.Now()
		kind.last.Store(&now)
		return now
	}
}

// Silence returns the kind that has been silent for the longest, and for how long: math.MaxInt64 if nothing has arrived
// about it yet.
func (c *Contact) Silence(resources ...string) (resource string, silence time.Duration) {
	for _, r := range resources {
		if its := c.kinds[r].silence(c.clock); its >= silence {
			resource, silence = r, its
		}
	}
	return resource, silence
}

func (k *lastContact) silence(clock clock.PassiveClock) time.Duration {
	at := k.last.Load()
	if at == nil {
		return math.MaxInt64
	}
	return max(0, clock.Since(*at))
}

var _ prometheus.Collector = (*Contact)(nil)

// Describe implements prometheus.Collector.
func (c *Contact) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

// Collect implements prometheus.Collector. Kinds that are not watched are left out.
func (c *Contact) Collect(to chan<- prometheus.Metric) {
	for resource, kind := range c.kinds {
		if begin := kind.watched.Load(); begin != nil {
			silence := min(kind.silence(c.clock), c.clock.Since(*begin))
			to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, silence.Seconds(), resource)
		}
	}
}
