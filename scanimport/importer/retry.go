package importer

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/appsec-dev/findings-operator/internal/kube"
)

// requestTimeout bounds one request; a page of 500 findings is a few megabytes.
const requestTimeout = 30 * time.Second

// attempts, with the backoff between them, gives an API server that restarts about a minute.
const attempts = 9

// deniedAttempts gives a webhook that denies a request with an outage's status code less than a second: many use such a
// code for a temporary fault of their own, but others for good, and may do so for each finding.
const deniedAttempts = 3

// maxInVain is how many requests of a stage in a row may stay denied after all retries. From then on, denials in the
// stage are final at once: a webhook that denies each of 10,000 findings would otherwise delay the end of the import by
// half an hour.
const maxInVain = 10

// inVainKey is the context key of the number of requests of a stage that have stayed denied after all retries.
type inVainKey struct{}

// withDenials returns a context for the requests of a stage.
func withDenials(ctx context.Context) context.Context {
	return context.WithValue(ctx, inVainKey{}, new(atomic.Int32))
}

// denials counts how often webhooks have denied one request, to give it up after deniedAttempts.
type denials struct {
	made, most int
	// inVain is shared by the requests of a stage; nil outside a stage.
	inVain *atomic.Int32
}

func denialsIn(ctx context.Context) denials {
	d := denials{most: deniedAttempts}
	d.inVain, _ = ctx.Value(inVainKey{}).(*atomic.Int32)
	if d.inVain != nil && d.inVain.Load() >= maxInVain {
		d.most = 1
	}
	return d
}

// end records whether retries after denials have helped the request, which ended with err.
func (d *denials) end(err error) {
	switch {
	case d.inVain == nil:
	case err == nil && d.made > 0:
		d.inVain.Store(0)
	case d.made == deniedAttempts:
		d.inVain.Add(1)
	}
}

// Retry calls request, which must be idempotent, until it succeeds, fails permanently, or has used up its attempts.
func Retry(ctx context.Context, request func(ctx context.Context) error) error {
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: attempts,
		Cap: 15 * time.Second}
	afterDenial := backoff // a separate one, because an earlier outage has made the pauses long
	denied := denialsIn(ctx)
	for {
		attempt, cancel := context.WithTimeout(ctx, requestTimeout)
		err := kube.OnceMoreIfUnauthorized(func() error { return request(attempt) })
		cancel()
		if err != nil && errors.Is(ctx.Err(), context.Canceled) { // the text of client-go asks to retry
			return context.Cause(ctx)
		}
		next := &backoff
		if kube.IsDeniedByWebhook(err) {
			denied.made++
			next = &afterDenial
		}
		if err == nil || ctx.Err() != nil || next.Steps <= 1 || !mayPass(err, &denied) {
			denied.end(err)
			return err
		}
		pause := next.Step()
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok && next == &backoff {
			pause = max(pause, time.Duration(seconds)*time.Second)
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

// mayPass reports whether the error of a request may go away by itself after this many denials.
func mayPass(err error, denied *denials) bool {
	if !kube.IsDeniedByWebhook(err) {
		return kube.IsTemporary(err)
	}
	if seconds, _ := apierrors.SuggestsClientDelay(err); seconds > 0 && apierrors.IsTooManyRequests(err) {
		return false // the client library has already waited and sent it again
	}
	return isOutage(err) && denied.made < denied.most
}

// isOutage reports whether the error has a status code that asks to try again.
func isOutage(err error) bool {
	code := kube.StatusOf(err).Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}
