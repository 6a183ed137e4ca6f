package webhookdelivery

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/apitime"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

const (
	// successNote is how often a success is recorded for an endpoint without failures.
	successNote = time.Minute
	// maxFailures bounds the counter of consecutive failures. Without a bound, each attempt at a
	// broken endpoint would write the status.
	maxFailures = 100
)

// Messages of endpoints that were disabled after failures.
const (
	goneMessage    = "the receiver answered 410 Gone"
	failingMessage = "every attempt of five days failed"
)

// attempted describes an ended attempt that is to be counted for its endpoint.
type attempted struct {
	result
	// at is when it began, and ended when it ended.
	at, ended time.Time
	// generation is that of the endpoint that it was made for.
	generation int64
	// last means that the delivery gets no further automatic attempt.
	last bool
}

// isAt reports whether the attempt is the one at the index. Once the list is full, each new attempt has the last index.
func (a attempted) isAt(index int, all []v1alpha1.WebhookAttempt) bool {
	return index < len(all) && all[index].At.Equal(new(v1alpha1.NewTime(a.at)))
}

// recordAtEndpoint counts the attempt in the endpoint's status if that changes the status.
func (r *Reconciler) recordAtEndpoint(ctx context.Context, sent *v1alpha1.WebhookEndpoint, made attempted) error {
	if changes, err := r.changesEndpoint(ctx, sent, made); err != nil || !changes {
		return err
	}
	err := untilRecorded(ctx, recordTimeout, func(ctx context.Context) error {
		endpoint := &v1alpha1.WebhookEndpoint{}
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(sent), endpoint); err != nil || endpoint.UID != sent.UID {
			return err
		}
		before := *endpoint.Status.DeepCopy()
		if !count(endpoint, made, r.Clock.Now()) {
			return nil
		}
		_, err := patch.Status(ctx, r.Client, endpoint, before, endpoint.Status)
		return err
	})
	if err != nil {
		return fmt.Errorf("count an attempt at webhook endpoint %s: %w", sent.Name, err)
	}
	return nil
}

// changesEndpoint reports whether counting the attempt would change the endpoint's status, as of the beginning of the
// attempt or as the cache shows it: another attempt may have failed and been counted meanwhile.
func (r *Reconciler) changesEndpoint(ctx context.Context, sent *v1alpha1.WebhookEndpoint,
	made attempted) (bool, error) {
	if count(sent.DeepCopy(), made, r.Clock.Now()) {
		return true, nil
	}
	cached := &v1alpha1.WebhookEndpoint{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(sent), cached); err != nil {
		return false, kube.IgnoreNotFound(err)
	}
	return count(cached, made, r.Clock.Now()), nil
}

// count adds the attempt to the endpoint's status, and reports whether the status changed.
func count(endpoint *v1alpha1.WebhookEndpoint, made attempted, now time.Time) bool {
	removed := removeFutureSuccess(&endpoint.Status, now)
	if made.outcome == v1alpha1.WebhookAttemptSucceeded {
		return countSuccess(&endpoint.Status, made.at) || removed
	}
	return countFailure(endpoint, made) || removed
}

// removeFutureSuccess removes the time of the last success if it is further ahead of now than apitime.MaxAhead, and
// reports whether it did. A wrong clock recorded it, and it would hide failures until then. now is the time of the
// count: an outage may delay it, and a later attempt may have succeeded long after this one began.
func removeFutureSuccess(status *v1alpha1.WebhookEndpointStatus, now time.Time) bool {
	if last := status.LastSuccessAt; last == nil || !last.After(now.Add(apitime.MaxAhead)) {
		return false
	}
	status.LastSuccessAt = nil
	return true
}

func countSuccess(status *v1alpha1.WebhookEndpointStatus, at time.Time) bool {
	last := status.LastSuccessAt
	if last != nil && at.Sub(last.Time) < successNote && status.ConsecutiveFailures == 0 && status.FailingSince == nil {
		return false
	}
	status.ConsecutiveFailures, status.FailingSince = 0, nil
	if last == nil || at.After(last.Time) {
		status.LastSuccessAt = new(v1alpha1.NewTime(at))
	}
	return true
}

func countFailure(endpoint *v1alpha1.WebhookEndpoint, made attempted) bool {
	status := &endpoint.Status
	// An attempt for another spec, or one that began before the last success, does not reflect the endpoint's current
	// state.
	last := status.LastSuccessAt
	if made.generation != endpoint.Generation || last != nil && made.at.Before(last.Time) {
		return false
	}
	changed := false
	if status.ConsecutiveFailures < maxFailures {
		status.ConsecutiveFailures++
		changed = true
	}
	if at := made.at.UTC().Truncate(time.Second); status.FailingSince == nil || at.Before(status.FailingSince.Time) {
		status.FailingSince = new(v1alpha1.NewTime(at))
		changed = true
	}
	if why := reasonToDisable(endpoint, made); why != nil && endpoint.DisabledByControllers() == nil {
		status.Disabled = why
		changed = true
	}
	return changed
}

// reasonToDisable returns why the failure disables the endpoint; nil if it does not. A few attempts over days are no
// proof: a delivery must have failed for good, or as many attempts as are counted.
func reasonToDisable(endpoint *v1alpha1.WebhookEndpoint, made attempted) *v1alpha1.WebhookDisabled {
	why := &v1alpha1.WebhookDisabled{
		At:         v1alpha1.NewTime(made.ended),
		Generation: endpoint.Generation,
	}
	// Until the endpoint's controller has observed the spec, the counted failures belong to the previous spec.
	followed := endpoint.Status.ObservedGeneration == endpoint.Generation
	many := made.last || endpoint.Status.ConsecutiveFailures >= maxFailures
	switch {
	case made.code == http.StatusGone:
		why.Reason, why.Message = v1alpha1.WebhookDisabledGone, goneMessage
	case followed && many && !made.at.Before(endpoint.Status.FailingSince.Add(webhooks.MaxFailing)):
		why.Reason, why.Message = v1alpha1.WebhookDisabledFailingTooLong, failingMessage
	default:
		return nil
	}
	return why
}
