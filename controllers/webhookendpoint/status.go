package webhookendpoint

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/signatures"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// failuresBeforeFailing is how many attempts in a row must fail before an endpoint that has worked counts as failing.
// One is enough for an endpoint that never has.
const failuresBeforeFailing = 3

// notRotated is added to the message if the serial does not ask for a new rotation.
const notRotated = " The signing secret is not rotated, because spec.rotation.serial is lower than " +
	"status.rotationSerial: raise it above that."

// judge returns the conditions' verdict on the endpoint.
func judge(endpoint *v1alpha1.WebhookEndpoint, served bool, f found) conditions.Verdict {
	rotation := ""
	if isNotRotated(endpoint) {
		rotation = notRotated
	}
	entries := conditions.Shortened(strings.Join(webhooks.Unmatched(endpoint.Spec.Events), ", "))
	switch {
	case !served:
		return conditions.Stalled(v1alpha1.ReasonTooManyEndpoints,
			"Only the 50 oldest WebhookEndpoints of a namespace get events, and this is not one of them: "+
				"delete older ones that are no longer needed.")
	case !f.usable() || f.unwritten != nil:
		return secretVerdict(f, endpoint.DisabledByControllers())
	case endpoint.Spec.Disabled:
		return conditions.NotReady(v1alpha1.ReasonEndpointDisabled,
			"Nothing is sent while spec.disabled is set: remove it to send the pending deliveries. Events without a "+
				"delivery are not sent later."+rotation)
	case endpoint.DisabledByControllers() != nil:
		return disabledVerdict(endpoint.DisabledByControllers())
	case failing(endpoint.Status):
		unmatched := ""
		if entries != "" {
			unmatched = fmt.Sprintf(" No event matches these entries of spec.events: %s.", entries)
		}
		return conditions.NotReady(v1alpha1.ReasonDeliveryFailing,
			"The last attempts failed: status.attempts of the endpoint's WebhookDeliveries shows why."+rotation+unmatched)
	}
	if entries != "" {
		return conditions.Verdict{
			Ready: true, Reason: v1alpha1.ReasonUnknownEvents,
			Message: fmt.Sprintf("No event matches these entries of spec.events: %s. Correct or remove them. Known are types "+
				"and groups such as finding.created, finding.* and scan.completed; pages are selected by the types that they "+
				"contain, not by finding.batch.", entries) + rotation,
		}
	}
	return conditions.Ready(fmt.Sprintf("Events are signed with the secret in Secret %q under the key %q.", f.name,
		v1alpha1.WebhookSecretKey) + rotation)
}

func disabledVerdict(disabled *v1alpha1.WebhookDisabled) conditions.Verdict {
	return conditions.Stalled(string(disabled.Reason),
		fmt.Sprintf("Sending has stopped because %s. Once the receiver accepts events again, change the spec "+
			"(correct spec.url, or set spec.disabled and remove it): the deliveries that are still pending are then sent, "+
			"events without a delivery are not. "+thenFail, disabled.Message))
}

// thenFail explains what becomes of the deliveries of an endpoint that the controllers have disabled.
const thenFail = "Deliveries fail if they are still pending 30 days after sending stopped; while spec.disabled is set " +
	"they stay pending. Once the endpoint is ready, `kubectl findings redeliver --endpoint NAME --failed` sends those that have " +
	"failed, unless retention has removed them."

// secretVerdict returns what is wrong with the Secret, and whether sending has stopped.
func secretVerdict(f found, disabled *v1alpha1.WebhookDisabled) conditions.Verdict {
	verdict := problemOf(f)
	if disabled != nil {
		verdict.Stalled, verdict.Reason = true, string(disabled.Reason)
		verdict.Message = fmt.Sprintf("Sending has stopped because %s. %s %s", disabled.Message, verdict.Message, thenFail)
	}
	return verdict
}

func problemOf(f found) conditions.Verdict {
	switch {
	case f.unwritten != nil:
		consequence := "so nothing can be signed or sent"
		if f.usable() {
			consequence = "but the signing secret in it stays in use; delete the Secret to end that"
		}
		return conditions.NotReady(v1alpha1.ReasonSecretNotWritten,
			fmt.Sprintf("Secret %q could not be written, %s. The controllers keep retrying. Last error: %q.", f.name,
				consequence, conditions.Shortened(f.unwritten.Error())))
	case kube.IsNotFound(f.problem):
		return conditions.Stalled(v1alpha1.ReasonSecretNotFound,
			fmt.Sprintf("There is no Secret %q in this namespace: create it with a signing secret under the key %q, or remove spec.secretRef to have one created.", f.name, v1alpha1.WebhookSecretKey))
	case kube.IsAlreadyExists(f.problem):
		return conditions.Stalled(v1alpha1.ReasonSecretConflict,
			fmt.Sprintf("Secret %q exists and does not belong to this endpoint, or has a finalizer that prevents its "+
				"replacement: name it in spec.secretRef to use it, or delete it with its finalizers.", f.name))
	}
	return conditions.Stalled(v1alpha1.ReasonSecretInvalid,
		fmt.Sprintf("Secret %q cannot be used: %s. Correct it. If the controllers created it, you can delete it instead: they create a new one.", f.name, f.problem))
}

func failing(status v1alpha1.WebhookEndpointStatus) bool {
	if status.LastSuccessAt == nil {
		return status.ConsecutiveFailures > 0
	}
	return status.ConsecutiveFailures >= failuresBeforeFailing
}

// observeSpec resets the failure counters and the reason for disabling after the spec has changed, because they belong
// to the previous spec.
func (*Reconciler) observeSpec(_ context.Context, s *scope) error {
	if s.Status.ObservedGeneration != s.Object.Generation {
		s.Status.ConsecutiveFailures, s.Status.FailingSince = 0, nil
		s.Status.Disabled = s.Object.DisabledByControllers()
	}
	return nil
}

// observeSecret disables an endpoint that has had no usable secret for as long as an endpoint may fail. Otherwise its
// deliveries would pile up, and retention would keep the subjects of pending events. A usable secret ends that. The
// time begins with the loss of the secret, even if attempts had failed before.
func observeSecret(s *scope, usable bool) {
	status, disabled := s.Status, s.Object.DisabledByControllers()
	switch {
	case usable && disabled != nil && disabled.Reason == v1alpha1.WebhookDisabledNoUsableSecret:
		status.FailingSince, status.Disabled = nil, nil
	case usable && status.ConsecutiveFailures == 0:
		status.FailingSince = nil
	case usable || s.Object.IsDisabled():
	case status.FailingSince == nil || s.Before.SecretRef != nil:
		status.FailingSince = new(v1alpha1.NewTime(s.Now))
		s.RequeueAfter(reconcile.MaxWait)
	case s.Now.Before(status.FailingSince.Add(webhooks.MaxFailing)):
		s.RequeueAfter(min(status.FailingSince.Add(webhooks.MaxFailing).Sub(s.Now), reconcile.MaxWait))
	default:
		status.Disabled = &v1alpha1.WebhookDisabled{
			At: v1alpha1.NewTime(s.Now), Generation: s.Object.Generation,
			Reason: v1alpha1.WebhookDisabledNoUsableSecret, Message: "there was no usable signing secret for five days",
		}
	}
}

// remember puts the secrets in use in front of those remembered so far. A secret that is no longer in use expired at
// its recorded time if that has passed, else it expires now.
//
// Expired secrets stay on the list for a while, so that the expiry of their recorded signatures can be updated. A full
// list drops the oldest, which are at its end. The controller of deliveries relies on that order, and on a list with
// MaxWebhookSecrets entries being full: it treats secrets missing in a full list as expired. A larger maximum would
// break that for stored lists.
func remember(before []v1alpha1.WebhookSecretStatus, inUse []signatures.Expiring,
	now time.Time) []v1alpha1.WebhookSecretStatus {
	var out []v1alpha1.WebhookSecretStatus
	known := map[string]bool{}
	for _, secret := range inUse {
		entry := v1alpha1.WebhookSecretStatus{ID: secret.ID(), ExpiresAt: secret.ExpiresAt}
		out, known[entry.ID] = append(out, entry), true
	}
	for _, entry := range before {
		if known[entry.ID] {
			continue
		}
		if entry.ExpiresAt == nil || entry.ExpiresAt.After(now) {
			entry.ExpiresAt = new(v1alpha1.NewTime(now))
		}
		out, known[entry.ID] = append(out, entry), true
	}
	return slices.Clip(out[:min(len(out), v1alpha1.MaxWebhookSecrets)])
}
