package webhooks

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// waits are the pauses after each attempt of a round except the last. The first attempt is made at once.
var waits = [...]time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour,
}

const (
	// AttemptsPerRound is how many attempts a delivery gets, and each redelivery of it.
	AttemptsPerRound = len(waits) + 1
	// jitter is the largest share of a wait that is added to it, so that deliveries that failed together are
	// not retried together.
	jitter = 0.2
	// maxRetryAfter is how long a receiver may delay the next attempt.
	maxRetryAfter = 24 * time.Hour
	// MaxFailing is how long an endpoint may fail, without a success, before nothing more is sent.
	MaxFailing = 5 * 24 * time.Hour
	// MaxDisabled is how long a delivery waits for an endpoint that the controllers have disabled: perhaps nobody ever
	// enables it.
	MaxDisabled = 30 * 24 * time.Hour
)

// Round returns the attempts that count for the schedule: all of them, or those of the last
// redelivery.
func Round(status *v1alpha1.WebhookDeliveryStatus) []v1alpha1.WebhookAttempt {
	n := len(status.Attempts)
	if status.Redelivery != nil {
		n = min(n, int(status.Redelivery.Attempts))
	}
	return status.Attempts[len(status.Attempts)-n:]
}

// NextAttempt returns when the delivery's next attempt is due, the zero time meaning at once, and whether there is one.
// All attempts of its round must have ended.
//
// The result depends only on the delivery, so that a newly started controller computes the same times.
func NextAttempt(delivery *v1alpha1.WebhookDelivery) (at time.Time, due bool) {
	round := Round(&delivery.Status)
	n := len(round)
	switch {
	case n == 0:
		return time.Time{}, true
	case n >= AttemptsPerRound, round[n-1].Outcome == v1alpha1.WebhookAttemptSucceeded:
		return time.Time{}, false
	}
	at = after(&round[n-1], spread(waitAfter(round), delivery.Spec.Event.ID, n))
	if asked := round[n-1].RetryAt; asked != nil && asked.After(at) {
		at = asked.Time
	}
	return at.UTC(), true
}

// waitAfter returns the wait after the last attempt of the round, without jitter.
//
// An attempt with an unknown outcome is repeated soon: the receiver may never have seen it, and recognises a repetition
// by its webhook-id. After two unknown attempts in a row the schedule applies, or a payload that crashes the controller
// would do so every few seconds.
func waitAfter(round []v1alpha1.WebhookAttempt) time.Duration {
	n := len(round)
	unknown := round[n-1].Outcome == v1alpha1.WebhookAttemptUnknown
	if unknown && (n == 1 || round[n-2].Outcome != v1alpha1.WebhookAttemptUnknown) {
		return waits[0]
	}
	return waits[n-1]
}

// spread adds the jitter of the event's n-th attempt to the wait. It differs for each event and
// attempt.
func spread(wait time.Duration, event string, n int) time.Duration {
	sum := sha256.Sum256([]byte(event + "\n" + strconv.Itoa(n)))
	part := float64(binary.BigEndian.Uint64(sum[:8])) / math.MaxUint64
	return wait + time.Duration(part*jitter*float64(wait))
}

// after returns the time that long after the attempt's end, or after its start if the end is unknown. It is
// rounded up to a second, because times are stored in whole seconds.
func after(attempt *v1alpha1.WebhookAttempt, wait time.Duration) time.Time {
	from := attempt.At.Time
	if attempt.EndedAt != nil {
		from = attempt.EndedAt.Time
	}
	return from.Add(time.Second + wait).Truncate(time.Second)
}

// RetryAt returns the earliest time of the next attempt according to the retry-after header of an answer that
// was just received: a number of seconds or a date, at most a day ahead. Nil if the header requests nothing.
func RetryAt(header string, now time.Time) *v1alpha1.Time {
	until, asked := retryAfter(strings.TrimSpace(header), now)
	if !asked || !until.After(now) {
		return nil
	}
	if latest := now.Add(maxRetryAfter); until.After(latest) {
		until = latest
	}
	return new(v1alpha1.NewTime(until.Add(time.Second - 1))) // rounded up, so never sooner than requested
}

func retryAfter(header string, now time.Time) (time.Time, bool) {
	seconds, err := strconv.ParseUint(header, 10, 63)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		seconds = min(seconds, uint64(maxRetryAfter/time.Second))
		return now.Add(time.Duration(seconds) * time.Second), true //nolint:gosec // at most a day
	}
	date, err := http.ParseTime(header)
	return date, err == nil
}

// RedeliveryAsked returns the redelivery that the delivery's annotation requests and that was not accepted yet, in the
// form in which it is recorded; "" if there is none.
func RedeliveryAsked(delivery *v1alpha1.WebhookDelivery) string {
	value := delivery.Annotations[v1alpha1.RedeliverAnnotation]
	if value == "" {
		return ""
	}
	if len(value) > v1alpha1.MaxWebhookRedeliveryLength {
		sum := sha256.Sum256([]byte(value))
		value = "sha256:" + hex.EncodeToString(sum[:])
	}
	if taken := delivery.Status.Redelivery; taken != nil && taken.Value == value {
		return ""
	}
	return value
}

// TakeUpRedelivery begins the round that the delivery's annotation requests, if any. The delivery is pending then.
func TakeUpRedelivery(delivery *v1alpha1.WebhookDelivery, now time.Time) {
	if value := RedeliveryAsked(delivery); value != "" {
		delivery.Status.Redelivery = &v1alpha1.WebhookRedelivery{
			Value: value, At: v1alpha1.NewTime(now),
		}
		delivery.Status.Phase = v1alpha1.WebhookDeliveryPending
	}
}

// AddAttempt appends the attempt. Beyond the bound the oldest attempt is dropped, and its signatures
// can no longer be verified.
func AddAttempt(status *v1alpha1.WebhookDeliveryStatus, attempt v1alpha1.WebhookAttempt) {
	status.Attempts = append(status.Attempts, attempt)
	if over := len(status.Attempts) - v1alpha1.MaxWebhookAttempts; over > 0 {
		status.Attempts = status.Attempts[over:]
	}
	if status.Redelivery != nil {
		status.Redelivery.Attempts++
	}
}
