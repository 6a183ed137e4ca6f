package ratelimit

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// place is where a request was counted.
type place string

const (
	inRedis  place = "redis"
	inMemory place = "memory"
)

type metrics struct {
	requests    *prometheus.CounterVec
	redisErrors prometheus.Counter
	redisInUse  prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "findings_ratelimit_requests_total",
			Help: "Requests counted against a rate limit, by outcome (allowed, blocked) and by where they were counted (redis, memory).",
		}, []string{"outcome", "store"}),
		redisErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "findings_ratelimit_redis_errors_total",
			Help: "Calls to Redis that failed or took longer than 50 ms; their requests were counted in memory.",
		}),
		redisInUse: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "findings_ratelimit_redis_in_use",
			Help: "1 if the last request was counted in Redis, or if there was none and Redis is configured; 0 if in memory.",
		}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, collector := range []prometheus.Collector{m.requests, m.redisErrors, m.redisInUse} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("register the metrics of the rate limit: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) record(decision Decision, where place) {
	outcome := "allowed"
	if !decision.Allowed {
		outcome = "blocked"
	}
	m.requests.WithLabelValues(outcome, string(where)).Inc()
	inUse := 0.0
	if where == inRedis {
		inUse = 1
	}
	m.redisInUse.Set(inUse)
}
