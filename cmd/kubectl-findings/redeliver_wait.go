package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// await waits for the requested redeliveries, and updates their outcomes from the last read.
func (o *redeliverOptions) await(ctx context.Context, s *session, names []string, outcomes []outcome, value string) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	var left []int
	for i, e := range outcomes {
		if e.tried && e.err == nil {
			left = append(left, i)
			outcomes[i].err = errNotRead
		}
	}
	failed := make([]error, len(names)) // why the last read of each failed
	_ = poll(ctx, func() (bool, error) {
		read := forEach(ctx, len(left), o.concurrency, func(int, int) {}, func(i int) (bool, error) {
			return true, redelivered(ctx, s, names[left[i]], value)
		})
		answered, unanswered := false, error(nil)
		for i, e := range read {
			switch {
			case !e.tried, e.err != nil && ctx.Err() != nil && isTemporary(e.err): // the wait ended
			case e.err != nil && isTemporary(e.err):
				failed[left[i]] = e.err
				unanswered = e.err
			default:
				failed[left[i]] = nil
				outcomes[left[i]] = e
				answered = true
			}
		}
		left = slices.DeleteFunc(left, func(i int) bool {
			return !errors.Is(outcomes[i].err, errNotRead) && !errors.Is(outcomes[i].err, errStillPending)
		})
		if answered {
			unanswered = nil
		}
		return len(left) == 0, unanswered
	})
	for _, i := range left {
		if failed[i] != nil {
			outcomes[i].err = fmt.Errorf("%w: %w", outcomes[i].err, failed[i])
		}
	}
}

var (
	errStillPending = errors.New("requested, but not delivered yet; the service continues to try")
	errNotRead      = errors.New("requested, but not known to be delivered; the service continues to try")
)

// redelivered reads a delivery and returns the outcome of its redelivery.
func redelivered(ctx context.Context, s *session, name, value string) error {
	d := &v1alpha1.WebhookDelivery{}
	if err := s.get(ctx, name, d); err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	ended, err := isRedelivered(d, value)
	switch {
	case errors.Is(err, errAskedAgain):
		return fmt.Errorf("%w: wait for that redelivery with: %s --watch", err, s.command("get", "webhookdeliveries"))
	case !ended && err == nil:
		return stillPending(d, value)
	}
	return err
}

// stillPending returns errStillPending with the reason, if the redelivery requested with that value has begun.
func stillPending(d *v1alpha1.WebhookDelivery, value string) error {
	switch {
	case !hasBegun(d, value):
		return errStillPending
	case d.Status.Redelivery.Attempts == 0:
		return fmt.Errorf("%w; not sent yet: %s", errStillPending, whyNotSent(d))
	}
	return fmt.Errorf("%w; the last attempt: %s", errStillPending, lastAttempt(d))
}

// hasBegun reports whether the controllers have begun the redelivery requested with that value.
func hasBegun(d *v1alpha1.WebhookDelivery, value string) bool {
	return d.Status.Redelivery != nil && d.Status.Redelivery.Value == value
}

// isRedelivered reports whether the redelivery requested with that value has ended. It returns an error if it failed,
// or if nothing will be sent until somebody enables the endpoint.
func isRedelivered(d *v1alpha1.WebhookDelivery, value string) (bool, error) {
	begun, asked := hasBegun(d, value), d.Annotations[v1alpha1.RedeliverAnnotation]
	switch phase := d.Status.Phase; {
	case begun && phase == v1alpha1.WebhookDeliveryDelivered:
		return true, nil
	case begun && phase == v1alpha1.WebhookDeliveryFailed:
		return false, errFailed(d)
	case begun && phase == v1alpha1.WebhookDeliveryPending && isEndpointDisabled(d):
		return false, errDisabled(d)
	case asked == "" && !begun:
		return false, errNoLongerAsked
	case asked != "" && asked != value:
		return false, errAskedAgain
	}
	return false, nil
}

// errFailed returns the error for a redelivery that has failed.
func errFailed(d *v1alpha1.WebhookDelivery) error {
	if d.Status.Redelivery.Attempts == 0 {
		return fmt.Errorf("it was not sent again: %s", whyNotSent(d))
	}
	return fmt.Errorf("it failed again: %s", lastAttempt(d))
}

func isEndpointDisabled(d *v1alpha1.WebhookDelivery) bool {
	ready := v1alpha1.FindCondition(d.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonEndpointDisabled
}

// errDisabled returns the error for a redelivery that waits until somebody enables the endpoint.
func errDisabled(d *v1alpha1.WebhookDelivery) error {
	if d.Status.Redelivery.Attempts == 0 {
		return fmt.Errorf("requested, but not sent: %s", whyNotSent(d))
	}
	return fmt.Errorf("it failed again: %s. %s", lastAttempt(d), whyNotSent(d))
}

var errAskedAgain = errors.New("somebody has requested it again in the meantime")

var errNoLongerAsked = errors.New("somebody has removed the annotation " + v1alpha1.RedeliverAnnotation +
	" before the redelivery began: request it again")

// whyNotSent returns why no attempt, or no further one, is made.
func whyNotSent(d *v1alpha1.WebhookDelivery) string {
	if ready := v1alpha1.FindCondition(d.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Message
	}
	return "no attempt was made"
}

func lastAttempt(d *v1alpha1.WebhookDelivery) string {
	if len(d.Status.Attempts) == 0 {
		return "no attempt was made"
	}
	last := d.Status.Attempts[len(d.Status.Attempts)-1]
	if last.Outcome == v1alpha1.WebhookAttemptStarted {
		return "it is in progress"
	}
	if last.Code != 0 {
		return fmt.Sprintf("%s (status %d)", last.Message, last.Code)
	}
	return last.Message
}
