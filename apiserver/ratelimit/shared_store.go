package ratelimit

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
	"github.com/ulule/limiter/v3"
	redisstore "github.com/ulule/limiter/v3/drivers/store/redis"
)

const (
	// breakerFailures is after how many failures in a row Redis is left alone.
	breakerFailures = 3

	// breakerTimeout is for how long. After it one request tries; the others do not wait.
	breakerTimeout = time.Second

	// expiryGrain is taken off a window in Redis, which keeps a key to the end of the
	// millisecond that it expires in: a client that waits as long as it is told is not early.
	expiryGrain = time.Millisecond
)

// sharedStore counts in Redis while Redis answers.
type sharedStore struct {
	client  *redis.Client
	store   limiter.Store
	breaker *gobreaker.CircuitBreaker[limiter.Context]
	metrics *metrics
	lastErr atomic.Pointer[error]
}

func newSharedStore(options *redis.Options, logger logr.Logger, metrics *metrics) (*sharedStore, error) {
	client := redis.NewClient(options)
	store, err := redisstore.NewStoreWithOptions(&scriptClient{Client: client}, limiter.StoreOptions{Prefix: keyPrefix})
	if err != nil {
		return nil, fmt.Errorf("make the store in Redis: %w", err)
	}
	s := &sharedStore{client: client, store: store, metrics: metrics}
	s.breaker = gobreaker.NewCircuitBreaker[limiter.Context](gobreaker.Settings{
		Timeout:       breakerTimeout,
		ReadyToTrip:   func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= breakerFailures },
		OnStateChange: s.logger(logger),
	})
	return s, nil
}

// get adds one to a counter; the limit goes along with each call, so that a changed figure
// holds at once. It fails within redisTimeout.
func (s *sharedStore) get(ctx context.Context, id string, rate limiter.Rate) (limiter.Context, error) {
	return s.breaker.Execute(func() (limiter.Context, error) {
		// A client that hangs up must not look like a Redis that does not answer.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisTimeout)
		defer cancel()
		rate.Period -= expiryGrain
		counted, err := s.store.Get(ctx, id, rate)
		if err != nil {
			s.lastErr.Store(&err)
			s.metrics.redisErrors.Inc()
		}
		return counted, err
	})
}

// logger returns what tells of each move from Redis to memory and back, but of no trial that
// failed in between.
func (s *sharedStore) logger(logger logr.Logger) func(string, gobreaker.State, gobreaker.State) {
	return func(_ string, from, to gobreaker.State) {
		switch {
		case from == gobreaker.StateClosed && to == gobreaker.StateOpen:
			logger.Error(*s.lastErr.Load(), "Redis does not answer; rate limits are counted in this replica's memory until it does")
		case to == gobreaker.StateClosed:
			logger.Info("Redis answers; rate limits are shared by replicas again")
		}
	}
}

func (s *sharedStore) close() error {
	return s.client.Close()
}
