// Package ratelimit counts the requests of each caller in fixed windows of 60 seconds.
//
// Replicas share their counters through Redis. Where none is configured, or while it does not
// answer, each replica counts in its own memory: Redis being away refuses nobody, and delays a
// request by at most redisTimeout. docs/decisions/rate-limit.md has the reasons.
package ratelimit

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

const (
	// DefaultRequestsPerMinute is the limit of a caller for whom nothing else is declared.
	DefaultRequestsPerMinute = 600

	// Window is how long a caller's requests are counted together, from the first on.
	Window = time.Minute

	// cleanUpInterval is how often the counters in memory whose window is over are removed.
	cleanUpInterval = time.Minute

	keyPrefix = "findings:ratelimit"
)

// Options say where to count. The zero value counts in memory alone.
type Options struct {
	// RedisURL is that of the Redis that replicas share: redis://, rediss:// or unix://.
	RedisURL string
	// RedisURLFile is a file that holds the URL, so that its password is in no command line.
	// User and password are read again for each new connection; another host needs a restart.
	RedisURLFile string
	// Logger is told when counting moves from Redis to memory and back.
	Logger logr.Logger
	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer
}

// Limiter counts requests. It is safe for concurrent use.
type Limiter struct {
	shared    *sharedStore // nil without Redis
	memory    limiter.Store
	addresses *addresses
	metrics   *metrics
	window    time.Duration
}

// New returns a limiter. It does not call Redis, so it works while Redis is away; it fails
// when the options make no sense or the metrics are registered already.
func New(options Options) (*Limiter, error) {
	return newLimiter(options, newMemoryStore(), Window)
}

func newMemoryStore() limiter.Store {
	return memory.NewStoreWithOptions(limiter.StoreOptions{
		Prefix:          keyPrefix,
		CleanUpInterval: cleanUpInterval,
	})
}

func newLimiter(options Options, memory limiter.Store, window time.Duration) (*Limiter, error) {
	metrics, err := newMetrics(options.Registerer)
	if err != nil {
		return nil, err
	}
	l := &Limiter{
		memory:    memory,
		addresses: newAddresses(maxAddresses, window),
		metrics:   metrics,
		window:    window,
	}
	switch {
	case options.RedisURL != "" && options.RedisURLFile != "":
		return nil, errors.New("both a Redis URL and a file with one are given; give one of them")
	case options.RedisURL != "" || options.RedisURLFile != "":
		redisOptions, err := redisOptions(options.RedisURL, options.RedisURLFile)
		if err != nil {
			return nil, err
		}
		l.shared, err = newSharedStore(redisOptions, options.Logger, metrics)
		if err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Take counts one request of the caller and says whether it may go on. It never fails. The
// end of ctx does not stop it: a client that hangs up early has made its request, and says
// nothing about Redis.
func (l *Limiter) Take(ctx context.Context, caller Caller) Decision {
	id := caller.id
	if caller.address.IsValid() {
		id = l.addresses.id(caller.address, time.Now())
	}
	counted, where := l.count(ctx, id, limiter.Rate{Period: l.window, Limit: caller.limit()})
	decision := decide(counted, time.Now(), l.window)
	l.metrics.record(decision, where)
	return decision
}

// count adds one to a counter in Redis, or in memory if that cannot be had.
func (l *Limiter) count(ctx context.Context, id string, rate limiter.Rate) (limiter.Context, place) {
	if l.shared != nil {
		if counted, err := l.shared.get(ctx, id, rate); err == nil {
			return counted, inRedis
		}
	}
	// The memory store has no way to fail.
	counted, _ := l.memory.Get(ctx, id, rate)
	return counted, inMemory
}

// Close lets go of the connections to Redis. Later requests are counted in memory.
func (l *Limiter) Close() error {
	if l.shared == nil {
		return nil
	}
	return l.shared.close()
}
