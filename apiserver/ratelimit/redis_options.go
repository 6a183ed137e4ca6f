package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	// redisTimeout bounds what one request waits for Redis, whatever has to be done for it.
	redisTimeout = 50 * time.Millisecond

	// redisDialTimeout bounds a dial. The request that wanted the connection does not wait
	// for it past redisTimeout; the next one uses it. Were it as short, a TLS handshake to
	// another zone would never come to an end.
	redisDialTimeout = time.Second

	// redisIdleTime is how long an unused connection is kept: less than the middleboxes that
	// forget one in silence.
	redisIdleTime = time.Minute
)

// errRedisURL stands for every fault of a URL: what net/url and go-redis say of one quotes it,
// password and all.
var errRedisURL = errors.New("the Redis URL cannot be read; it should look like redis://user:password@host:6379/0, rediss:// for TLS, or unix:///path")

func init() {
	// go-redis prints a line for each connection that fails. The breaker logs what matters
	// of that, once. Set before any client exists, since the variable is not guarded.
	redis.SetLogger(silence{})
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// redisOptions reads the URL from a file, and sets what the bound on a request's delay rests on over whatever
// the URL asks for.
func redisOptions(file string) (*redis.Options, error) {
	options, err := readRedisURL(file)
	if err != nil {
		return nil, err
	}
	options.CredentialsProviderContext = fileCredentials(file, options.Username, options.Password)
	options.ContextTimeoutEnabled = true
	options.DialTimeout = redisDialTimeout
	options.ReadTimeout = redisTimeout
	options.WriteTimeout = redisTimeout
	options.PoolTimeout = redisTimeout
	options.ConnMaxIdleTime = redisIdleTime
	// A second try would cost the request as much as the first; memory is the second try.
	options.MaxRetries = -1
	options.DialerRetries = 1
	// Each is a round trip more on a new connection, for nothing that is used here.
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

// fileCredentials reads user and password again for each connection, so that a rotated Secret
// takes effect. What cannot be read leaves those that the process started with.
func fileCredentials(file, username, password string) func(context.Context) (string, string, error) {
	return func(context.Context) (string, string, error) {
		options, err := readRedisURL(file)
		if err != nil {
			return username, password, nil
		}
		return options.Username, options.Password, nil
	}
}
