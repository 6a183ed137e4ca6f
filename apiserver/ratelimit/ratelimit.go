// Package ratelimit counts the requests of each caller in fixed windows of 60 seconds.
//
// Replicas share their counters through Redis. If none is configured, or while it does not answer, each replica
// counts in its own memory: an outage of Redis rejects no request, and delays a request by at most redisTimeout.
// docs/decisions/rate-limit.md has the reasons.
package ratelimit

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	// DefaultRequestsPerMinute is the limit of a caller without a declared limit.
	DefaultRequestsPerMinute = 600

	// Window is the period in which a caller's requests are counted, starting with the first.
	Window = time.Minute

	keyPrefix = "findings:ratelimit"
)

// Options configure where to count. The zero value counts only in memory.
type Options struct {
	// RedisURLFile is a file with the URL of the Redis that replicas share (redis://, rediss:// or unix://), so
	// that its password is in no command line. If empty, each replica counts separately. User and password are
	// read again for each new connection; another host needs a restart.
	RedisURLFile string
	// Logger logs when counting moves from Redis to memory and back, and when the file can no longer be read, or names
	// another server or database.
	Logger logr.Logger
	// Registerer registers the metrics; nil for none.
	Registerer prometheus.Registerer
}

// Limiter counts requests. It is safe for concurrent use.
type Limiter struct {
	shared    *shared // nil without Redis
	memory    *memory
	addresses *addresses
	metrics   *metrics
	window    time.Duration
}

// New returns a limiter. It does not call Redis, so it works while Redis is down; it fails if the options are invalid.
func New(options Options) (*Limiter, error) { return newLimiter(options, Window) }

func newLimiter(options Options, window time.Duration) (*Limiter, error) {
	metrics := newMetrics(options.Registerer)
	l := &Limiter{memory: newMemory(window), addresses: newAddresses(maxAddresses, window), metrics: metrics,
		window: window}
	if options.RedisURLFile == "" {
		return l, nil
	}
	redisOptions, err := redisOptions(options.RedisURLFile, options.Logger)
	if err != nil {
		return nil, err
	}
	l.shared = newShared(redisOptions, window, options.Logger, metrics)
	metrics.redisInUse.Set(1) // no request has shown that Redis is away
	return l, nil
}

// Take counts one request of the caller and returns whether it may proceed. It never fails. The end of ctx does
// not stop it: a client that disconnects early has made its request, and its disconnect says nothing about
// Redis.
func (l *Limiter) Take(ctx context.Context, caller Caller) Decision {
	now, id := time.Now(), caller.id
	if caller.address.IsValid() {
		id = l.addresses.id(caller.address, now)
	}
	counted, where := l.count(ctx, id, now)
	decision := decide(counted, caller.limit(), l.window)
	if !decision.Allowed && where == inRedis {
		// Keep it refused until the same moment even if Redis does not answer the next request.
		l.memory.set(id, counted, now)
	}
	l.metrics.record(decision, where)
	return decision
}

// count increments a counter in Redis, or in memory if Redis fails.
func (l *Limiter) count(ctx context.Context, id string, now time.Time) (counted, place) {
	if l.shared != nil {
		if counted, err := l.shared.take(ctx, id); err == nil {
			return counted, inRedis
		}
	}
	return l.memory.take(id, now), inMemory
}

// Close closes the connections to Redis. Later requests are counted in memory.
func (l *Limiter) Close() error {
	if l.shared == nil {
		return nil
	}
	return l.shared.close()
}
