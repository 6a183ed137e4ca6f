package importer

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/internal/kube"
)

// requestTimeout bounds one request; a page of 500 findings is a few megabytes.
const requestTimeout = 30 * time.Second

// attempts gives a restarting API server about a minute, with the pauses between them.
const attempts = 9

// Retry calls request, which must be idempotent, until it succeeds, fails permanently, or has been tried often enough.
func Retry(ctx context.Context, request func(ctx context.Context) error) error {
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: attempts,
		Cap: 15 * time.Second}
	for {
		attempt, cancel := context.WithTimeout(ctx, requestTimeout)
		err := request(attempt)
		cancel()
		if err != nil && errors.Is(ctx.Err(), context.Canceled) { // client-go's text asks to retry
			return context.Cause(ctx)
		}
		if err == nil || ctx.Err() != nil || backoff.Steps <= 1 || !kube.IsTemporary(err) {
			return err
		}
		pause := backoff.Step()
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			pause = max(pause, time.Duration(seconds)*time.Second)
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}
