package ratelimit

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

const (
	// breakerFailures is after how many consecutive failures Redis is not called any more.
	breakerFailures = 3

	// breakerTimeout is for how long. After that one request tries Redis; the others do not wait for it.
	breakerTimeout = time.Second

	// expiryGrain is subtracted from a window in Redis, which keeps a key until the end of the millisecond in
	// which it expires: so a client that waits as long as it is told is not too early.
	expiryGrain = time.Millisecond
)

// takeScript counts a request against KEYS[1] in a window of ARGV[1] milliseconds, and returns the count and
// the remaining milliseconds. A counter without an expiry, as after PERSIST, gets one: otherwise it would block
// its caller forever.
var takeScript = redis.NewScript(`
local count = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  left = tonumber(ARGV[1])
  redis.call('PEXPIRE', KEYS[1], left)
end
return {count, left}`)

// shared counts requests in Redis while Redis answers.
type shared struct {
	client  *redis.Client
	length  time.Duration
	breaker *gobreaker.CircuitBreaker[counted]
	metrics *metrics
	lastErr atomic.Pointer[error]
}

func newShared(options *redis.Options, length time.Duration, logger logr.Logger, metrics *metrics) *shared {
	s := &shared{client: redis.NewClient(options), length: length, metrics: metrics}
	s.breaker = gobreaker.NewCircuitBreaker[counted](gobreaker.Settings{
		Timeout:       breakerTimeout,
		ReadyToTrip:   func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= breakerFailures },
		OnStateChange: s.logger(logger),
	})
	return s
}

// take counts a request. It fails within redisTimeout.
func (s *shared) take(ctx context.Context, id string) (counted, error) {
	return s.breaker.Execute(func() (counted, error) {
		// A client that disconnects must not look like a failure of Redis.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisTimeout)
		defer cancel()
		answer, err := s.run(ctx, id)
		if err != nil {
			s.lastErr.Store(&err)
			s.metrics.redisErrors.Inc()
		}
		return answer, err
	})
}

// run sends the script's digest, and its text if Redis does not have it.
func (s *shared) run(ctx context.Context, id string) (counted, error) {
	window := (s.length - expiryGrain).Milliseconds()
	answer, err := takeScript.Run(ctx, s.client, []string{redisKey(id)}, window).Int64Slice()
	if err != nil {
		return counted{}, err
	}
	if len(answer) != 2 {
		return counted{}, fmt.Errorf("the script answers %v", answer)
	}
	return counted{answer[0], time.Duration(answer[1])*time.Millisecond + expiryGrain}, nil
}

// redisKey returns the key in Redis of a counter. Redis does not learn the id, which contains an API key's UID or a
// client's address.
func redisKey(id string) string {
	const length = 16
	sum := sha256.Sum256([]byte(id))
	return keyPrefix + ":" + base64.RawURLEncoding.EncodeToString(sum[:length])
}

// logger returns a callback that logs each move from Redis to memory and back, but no failed trial in between.
func (s *shared) logger(logger logr.Logger) func(string, gobreaker.State, gobreaker.State) {
	return func(_ string, from, to gobreaker.State) {
		switch {
		case from == gobreaker.StateClosed && to == gobreaker.StateOpen:
			logger.Error(*s.lastErr.Load(),
				"Redis does not answer; rate limits are counted in this replica's memory until it does")
		case to == gobreaker.StateClosed:
			logger.Info("Redis answers; rate limits are shared by replicas again")
		}
	}
}

func (s *shared) close() error { return s.client.Close() }
