package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	// redisTimeout bounds how long one request waits for Redis, including dialing.
	redisTimeout = 50 * time.Millisecond

	// redisDialTimeout bounds a dial. The request that needs the connection does not wait for it longer than
	// redisTimeout; the next request uses it. If the dial timeout were as short, a TLS handshake to another
	// zone would never complete.
	redisDialTimeout = time.Second

	// redisIdleTime is how long an unused connection is kept: less than the time after which middleboxes
	// silently drop it.
	redisIdleTime = time.Minute
)

// errRedisURL replaces every error about a URL: those of net/url and go-redis quote the URL with its password.
var errRedisURL = errors.New("the Redis URL cannot be read; it should look like redis://user:password@host:6379/0, rediss:// for TLS, or unix:///path")

func init() {
	// go-redis prints a line for each connection that fails. The breaker logs the relevant part once. Set
	// before any client exists, because the variable is not guarded.
	redis.SetLogger(silence{})
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// redisOptions reads the URL from a file, and overrides the options that bound a request's delay.
func redisOptions(file string, logger logr.Logger) (*redis.Options, error) {
	options, err := readRedisURL(file)
	if err != nil {
		return nil, err
	}
	options.CredentialsProviderContext = fileCredentials(file, options, logger)
	options.ContextTimeoutEnabled = true
	options.DialTimeout = redisDialTimeout
	options.ReadTimeout = redisTimeout
	options.WriteTimeout = redisTimeout
	options.PoolTimeout = redisTimeout
	options.ConnMaxIdleTime = redisIdleTime
	// A retry would delay the request as long as the first try; counting in memory is the retry.
	options.MaxRetries = -1
	options.DialerRetries = 1
	// Each costs another round trip on a new connection, for features that are not used here.
	options.Protocol = 2
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return options, nil
}

func readRedisURL(file string) (*redis.Options, error) {
	content, err := os.ReadFile(file) //nolint:gosec // Whoever starts the process names the file.
	if err != nil {
		return nil, fmt.Errorf("read the file with the Redis URL: %w", err)
	}
	options, err := redis.ParseURL(strings.TrimSpace(string(content)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, errRedisURL)
	}
	return options, nil
}

// fileCredentials reads user and password again for each connection, so that a rotated Secret takes effect. If
// the file cannot be read or names another server, the last ones for the first server are used: connections are still
// made to it, and it must not learn the password of another.
func fileCredentials(
	file string, first *redis.Options, logger logr.Logger,
) func(context.Context) (string, string, error) {
	var (
		lock               sync.Mutex
		warned, unreadable bool
		last               = first
	)
	return func(context.Context) (string, string, error) {
		lock.Lock()
		defer lock.Unlock()
		options, err := readRedisURL(file)
		if err != nil && !unreadable {
			logger.Error(err, "The last user and password of Redis stay in use. A replica that starts now would fail")
		}
		unreadable = err != nil
		if unreadable {
			return last.Username, last.Password, nil
		}
		same := sameServer(options, first)
		if !warned && (!same || options.DB != first.DB) {
			logger.Error(nil, "The URL of Redis names another server or database now. Restart the REST API to use it")
			warned = true
		}
		if same {
			last = options
		}
		return last.Username, last.Password, nil
	}
}

// sameServer reports whether both connect to the same address, and both with TLS or both without.
func sameServer(a, b *redis.Options) bool {
	return a.Network == b.Network && a.Addr == b.Addr && (a.TLSConfig == nil) == (b.TLSConfig == nil)
}
