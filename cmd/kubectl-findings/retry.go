package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/internal/kube"
)

// backoff between attempts of one write, 12 to 19 seconds in total if each fails at once, because the client library
// does not wait for the Retry-After of an outage before it repeats a write. It has already waited for that of a code
// 429.
var backoff = wait.Backoff{Steps: 7, Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5}

// retryLimit is how long after the first attempt another may begin if attempts are slow to fail: with dropped packets,
// one takes half a minute. A request that times out is tried again.
const retryLimit = callTimeout + 10*time.Second

// withRetries retries an operation that may fail temporarily, because other clients write the object at the same time
// or the API server is overloaded. It gives up once ctx ends, or after retryLimit.
func withRetries(ctx context.Context, try func() error) error {
	begun, pauses := time.Now(), backoff
	err := kube.OnceMoreIfUnauthorized(try)
	for err != nil && isTemporary(err) && pauses.Steps > 1 && time.Since(begun) <= retryLimit {
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pauses.Step()):
		}
		err = kube.OnceMoreIfUnauthorized(try)
	}
	return err
}

func isTemporary(err error) bool { return kube.IsConflict(err) || kube.IsTemporary(err) }

// poll calls read until it returns true or fails, or ctx ends: every second, and more often at first. It continues
// after temporary errors for retryLimit, which lets an API server restart.
func poll(ctx context.Context, read func() (ended bool, err error)) error {
	const first, longest = 100 * time.Millisecond, time.Second
	answered := time.Now()
	for pause := first; ; pause = min(2*pause, longest) {
		begun := time.Now()
		ended := false
		err := kube.OnceMoreIfUnauthorized(func() (err error) {
			ended, err = read()
			return err
		})
		switch {
		case ended, err != nil && !isTemporary(err):
			return err
		case err == nil:
			answered = time.Now()
			pause = max(pause, answered.Sub(begun)) // so that many reads do not load the API server all the time
		case ctx.Err() != nil, time.Since(answered) > retryLimit:
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
