package ratelimit

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// place is where a request was counted.
type place string

const (
	inRedis  place = "redis"
	inMemory place = "memory"
)

// The outcomes of a request.
const (
	allowed = "allowed"
	blocked = "blocked"
)

type metrics struct {
	requests    *prometheus.CounterVec
	redisErrors prometheus.Counter
	redisInUse  prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	factory := promauto.With(registerer)
	m := &metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "findings_ratelimit_requests_total",
			Help: "Requests counted against a rate limit, by outcome (allowed, blocked) and by where they were counted (redis, memory).",
		}, []string{"outcome", "store"}),
		redisErrors: factory.NewCounter(prometheus.CounterOpts{
			Name: "findings_ratelimit_redis_errors_total",
			Help: "Calls to Redis that failed or took longer than 50 ms; their requests were counted in memory.",
		}),
		redisInUse: factory.NewGauge(prometheus.GaugeOpts{
			Name: "findings_ratelimit_redis_in_use",
			Help: "1 if the last request was counted in Redis, or if there was none and Redis is configured; 0 if in memory.",
		}),
	}
	for _, outcome := range []string{allowed, blocked} {
		for _, where := range []place{inRedis, inMemory} {
			m.requests.WithLabelValues(outcome, string(where)) // rate() misses the first increment of a new series
		}
	}
	return m
}

func (m *metrics) record(decision Decision, where place) {
	outcome := allowed
	if !decision.Allowed {
		outcome = blocked
	}
	m.requests.WithLabelValues(outcome, string(where)).Inc()
	inUse := 0.0
	if where == inRedis {
		inUse = 1
	}
	m.redisInUse.Set(inUse)
}
