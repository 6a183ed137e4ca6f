package ratelimit

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// scriptClient is the client that limiter's store is given in place of go-redis's own.
//
// The store sends its scripts to Redis when it is made, which would need Redis at the start,
// and again under one lock, which no deadline bounds, when Redis has lost them by a restart or
// a failover. Here a script's digest is computed, and its text goes along when it is missing.
//
// The store also takes a counter in its last millisecond, and one without an expiry, for a
// counter that has a whole window before it. The second would block its caller for ever.
type scriptClient struct {
	*redis.Client
	scripts sync.Map // digest to *redis.Script
}

// ScriptLoad keeps the script here and calls nobody.
func (c *scriptClient) ScriptLoad(ctx context.Context, text string) *redis.StringCmd {
	script := redis.NewScript(text)
	c.scripts.Store(script.Hash(), script)
	loaded := redis.NewStringCmd(ctx)
	loaded.SetVal(script.Hash())
	return loaded
}

// EvalSha runs a script, with its text if Redis does not have it.
func (c *scriptClient) EvalSha(ctx context.Context, digest string, keys []string, args ...any) *redis.Cmd {
	known, ok := c.scripts.Load(digest)
	if !ok {
		return c.Client.EvalSha(ctx, digest, keys, args...)
	}
	cmd := known.(*redis.Script).Run(ctx, c.Client, keys, args...)
	c.mendExpiry(ctx, cmd, keys, args)
	return cmd
}

// mendExpiry looks at what the script that counts was given, {by, window in ms}, and answers,
// {count, ms left}.
func (c *scriptClient) mendExpiry(ctx context.Context, cmd *redis.Cmd, keys []string, args []any) {
	answer, ok := cmd.Val().([]any)
	if !ok || len(answer) != 2 || len(args) != 2 {
		return
	}
	window, ok := args[1].(int64)
	if !ok {
		return
	}
	switch answer[1] {
	case int64(0):
		answer[1] = int64(1)
	case int64(-1):
		// If this fails, the next request does it.
		_ = c.PExpire(ctx, keys[0], time.Duration(window)*time.Millisecond).Err()
		answer[1] = window
	}
}
