package webhookdelivery

import (
	"fmt"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// outlook is what happens next to a delivery.
type outlook int

const (
	// outlookDue means that an attempt is due now. The zero value means that nothing more happens.
	outlookDue outlook = iota + 1
	// outlookWaiting means that it waits for its time, or for a change of the endpoint.
	outlookWaiting
	// outlookUnconfirmed means that the delivery fails for good, if the API server confirms what the cache holds about its
	// endpoint.
	outlookUnconfirmed
)

// step is the decision of a reconcile about a delivery.
type step struct {
	outlook outlook
	phase   v1alpha1.WebhookDeliveryPhase
	verdict conditions.Verdict
	// next is when an attempt is due, possibly in the past; nil if none is.
	next *v1alpha1.Time
	// wait is the time until next, or until a waiting delivery fails; 0 if neither is planned.
	wait time.Duration
}

// decide returns what to do about the delivery now. All attempts of its round must have ended.
func decide(s *scope) step {
	status := s.Status
	round := webhooks.Round(status)
	if n := len(round); n > 0 && round[n-1].Outcome == v1alpha1.WebhookAttemptSucceeded {
		return step{phase: v1alpha1.WebhookDeliveryDelivered, verdict: conditions.Verdict{
			Ready: true, Reason: v1alpha1.ReasonDelivered, Message: "The receiver has it.",
		}}
	}
	at, due := webhooks.NextAttempt(s.Object)
	switch {
	case s.endpoint == nil && s.Object.Spec.EndpointRef.UID != "" && status.Phase == v1alpha1.WebhookDeliveryFailed:
		// An endpoint with this UID cannot be recreated. If only the cache lags, the endpoint's event enqueues the delivery.
		return endpointGone(s)
	case s.endpoint == nil && s.Object.Spec.EndpointRef.UID != "":
		gone := endpointGone(s)
		gone.outlook = outlookUnconfirmed
		return gone
	case !due:
		return finallyFailed(v1alpha1.ReasonDeliveryFailed, failedMessage)
	case status.Phase == v1alpha1.WebhookDeliveryFailed:
		return finallyFailed(v1alpha1.ReasonEndpointDisabled, abandonedMessage)
	case s.endpoint == nil:
		return waiting(v1alpha1.ReasonEndpointNotFound,
			fmt.Sprintf("There is no WebhookEndpoint %q in this namespace: create it, or have a cluster administrator delete "+
				"the delivery.", s.Object.Spec.EndpointRef.Name))
	case !s.endpoint.DeletionTimestamp.IsZero():
		return waiting(v1alpha1.ReasonEndpointNotFound,
			"The endpoint is being deleted: nothing is sent to it. The delivery fails when the endpoint is gone.")
	case s.endpoint.Spec.Disabled:
		return waiting(v1alpha1.ReasonEndpointDisabled,
			"The endpoint is disabled: remove its spec.disabled to send this delivery.")
	case s.endpoint.DisabledByControllers() != nil:
		return whileDisabled(s, s.endpoint.DisabledByControllers())
	case s.endpoint.Status.SecretRef == nil:
		return waiting(v1alpha1.ReasonSecretNotFound,
			"The endpoint has no usable signing secret: see its conditions.")
	case at.After(s.Now):
		later := waiting(v1alpha1.ReasonProgressing, "The next attempt is made at status.nextAttemptAt.")
		later.next, later.wait = new(v1alpha1.NewTime(at)), at.Sub(s.Now)
		return later
	}
	atOnce := waiting(v1alpha1.ReasonProgressing, "An attempt is in progress or about to start.")
	atOnce.outlook = outlookDue
	if !at.IsZero() { // it is zero for the first attempt
		atOnce.next = new(v1alpha1.NewTime(at))
	}
	return atOnce
}

// failedMessage explains what to do about a delivery without further attempts.
const failedMessage = "All attempts have failed: see the message of the last attempt. " +
	"Set the annotation " + v1alpha1.RedeliverAnnotation + " to a new value to send the event again."

// abandonedMessage explains what to do about a delivery whose endpoint stayed disabled.
const abandonedMessage = "The controllers had disabled the endpoint for 30 days: once it is enabled, set the " +
	"annotation " + v1alpha1.RedeliverAnnotation + " to a new value to send the event."

// whileDisabled waits for the endpoint, which the controllers have disabled, but not forever: retention removes only
// finished deliveries. A redelivery waits as long, too.
func whileDisabled(s *scope, disabled *v1alpha1.WebhookDisabled) step {
	since := disabled.At.Time
	if asked := s.Status.Redelivery; asked != nil && asked.At.After(since) {
		since = asked.At.Time
	}
	left := since.Add(webhooks.MaxDisabled).Sub(s.Now)
	if left <= 0 {
		abandoned := finallyFailed(v1alpha1.ReasonEndpointDisabled, abandonedMessage)
		abandoned.outlook = outlookUnconfirmed
		return abandoned
	}
	later := waiting(v1alpha1.ReasonEndpointDisabled,
		fmt.Sprintf("The endpoint is disabled because %s: see its conditions.", disabled.Message))
	later.wait = left
	return later
}

func waiting(reason, message string) step {
	return step{
		outlook: outlookWaiting,
		phase:   v1alpha1.WebhookDeliveryPending,
		verdict: conditions.NotReady(reason, message),
	}
}

func finallyFailed(reason, message string) step {
	return step{
		phase:   v1alpha1.WebhookDeliveryFailed,
		verdict: conditions.Stalled(reason, message),
	}
}

func endpointGone(s *scope) step {
	return finallyFailed(v1alpha1.ReasonEndpointNotFound,
		fmt.Sprintf("The WebhookEndpoint %q was deleted, and a new endpoint of the same name does not receive earlier events: wait until retention removes the delivery.", s.Object.Spec.EndpointRef.Name))
}

// unfinishedMessage is the message of an attempt whose outcome was never recorded.
const unfinishedMessage = "the outcome could not be recorded, because the controller stopped or the API server did " +
	"not answer; the receiver may have got the event"

// unfinished reports whether the last attempt is running, or its outcome could not be recorded.
func unfinished(attempts []v1alpha1.WebhookAttempt) bool {
	n := len(attempts)
	return n > 0 && attempts[n-1].Outcome == v1alpha1.WebhookAttemptStarted
}

// closeUnfinished ends an attempt whose outcome could not be recorded, if there is one, and reports whether there was.
func closeUnfinished(status *v1alpha1.WebhookDeliveryStatus) bool {
	if !unfinished(status.Attempts) {
		return false
	}
	last := &status.Attempts[len(status.Attempts)-1]
	last.Outcome, last.Message = v1alpha1.WebhookAttemptUnknown, unfinishedMessage
	return true
}
