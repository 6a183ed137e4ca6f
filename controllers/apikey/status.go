package apikey

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
)

// notRotated is added to the message if the serial does not ask for a new rotation.
const notRotated = " Nothing is rotated, because spec.rotation.serial is lower than status.rotationSerial: raise it " +
	"above that for a new token."

// refusedWhileDisabled is added to the message of a disabled key that has another reason.
const refusedWhileDisabled = " Requests with this key are refused while spec.disabled is set."

// isNotRotated reports whether the spec asks for an earlier rotation than the last one.
func isNotRotated(s *scope) bool {
	return s.Object.Spec.Rotation != nil && s.Object.Spec.Rotation.Serial < s.Status.RotationSerial
}

// judge returns the verdict of the conditions on the final status.
func judge(s *scope) conditions.Verdict {
	status, rotation := s.Object.Status, ""
	if isNotRotated(s) {
		rotation = notRotated
	}
	over := expired(status, s.Now) || wasExpired(s, status.KeyID)
	switch {
	case status.KeyID != "" && over && shortened(s):
		return conditions.Stalled(v1alpha1.ReasonExpired,
			"The key has expired because of the organization's spec.apiKeys.maxLifetime: raise spec.rotation.serial above status.rotationSerial for a new token.")
	case status.KeyID == "" || over:
		return conditions.Stalled(v1alpha1.ReasonExpired,
			"The key has expired: set spec.expiresAt to a time in the future, or remove it, and raise spec.rotation.serial above status.rotationSerial for a new token.")
	case s.Object.Spec.Disabled:
		return conditions.NotReady(v1alpha1.ReasonDisabled,
			"Requests with this key are refused while spec.disabled is set: remove it to enable the key."+rotation)
	}
	message := fmt.Sprintf("The token is in Secret %q under the key %q.", status.SecretRef.Name, v1alpha1.APIKeyTokenKey)
	if shortened(s) {
		message += " The organization's spec.apiKeys.maxLifetime limits its lifetime."
	}
	return conditions.Ready(message + rotation)
}

// expired reports whether the status has no token that is valid by this clock.
func expired(status v1alpha1.APIKeyStatus, now time.Time) bool {
	return status.ExpiresAt == nil || !now.Before(status.ExpiresAt.Time)
}

// announce sends Events about the token, once the status is written.
func (r *Reconciler) announce(s *scope) {
	before, after := *s.Before, *s.Status
	if after.KeyID != "" && after.KeyID != before.KeyID {
		r.Recorder.Eventf(s.Object, nil, corev1.EventTypeNormal, "TokenIssued", "IssueToken",
			"Issued token %s into Secret %s", after.KeyID, after.SecretRef.Name)
	}
	if after.KeyID != "" && after.KeyID == before.KeyID && after.ExpiresAt.Before(before.ExpiresAt) && shortened(s) {
		r.Recorder.Eventf(s.Object, nil, corev1.EventTypeWarning, "LifetimeShortened", "BoundLifetime",
			"The organization's spec.apiKeys.maxLifetime ends the token %s earlier", after.KeyID)
	}
	if isNotRotated(s) && before.ObservedGeneration != after.ObservedGeneration {
		r.Recorder.Eventf(s.Object, nil, corev1.EventTypeWarning, "RotationIgnored", "IssueToken",
			"Nothing is rotated by spec.rotation.serial %d: for a new token set it to %d", s.Object.Spec.Rotation.Serial,
			after.RotationSerial+1)
	}
	if s.ReadyReason() == v1alpha1.ReasonExpired && conditions.ReadyReason(before.Conditions) != v1alpha1.ReasonExpired {
		r.Recorder.Eventf(s.Object, nil, corev1.EventTypeWarning, v1alpha1.ReasonExpired, "ExpireToken",
			"%s", v1alpha1.FindCondition(after.Conditions, v1alpha1.ConditionReady).Message)
	}
}

func organizationNotFound(namespace string) conditions.Verdict {
	return conditions.Stalled(v1alpha1.ReasonOrganizationNotFound,
		fmt.Sprintf("Namespace %q does not belong to an Organization: create the key in the namespace that status.namespace of its Organization names.", namespace))
}

func secretNotWritten(s *scope, err error) conditions.Verdict {
	consequence, disabled := "so the key has no token", ""
	if s.Object.Spec.Disabled {
		disabled = refusedWhileDisabled
	}
	if s.Status.KeyID != "" {
		consequence = "but its token stays valid until it expires or its signing key is withdrawn; delete the Secret to revoke it"
	}
	return conditions.NotReady(v1alpha1.ReasonSecretNotWritten,
		fmt.Sprintf("Secret %q could not be written, %s. The controller keeps retrying. Last error: %q.", SecretName(s.Object.Name),
			consequence, conditions.Shortened(err.Error()))+disabled)
}

// tokenNotSigned is the verdict on a key that has no token because no signing key can be used. The error is logged: it
// concerns whoever runs the operator, and the key's readers cannot act on it.
func tokenNotSigned(key *v1alpha1.APIKey) conditions.Verdict {
	disabled := ""
	if key.Spec.Disabled {
		disabled = refusedWhileDisabled
	}
	return conditions.NotReady(v1alpha1.ReasonSecretNotWritten,
		"The key has no token, because the operator's signing key cannot be used. The controller keeps retrying: if this "+
			"lasts, tell whoever runs the operator."+disabled)
}

func secretConflict(name string) conditions.Verdict {
	return conditions.Stalled(v1alpha1.ReasonSecretConflict,
		fmt.Sprintf("Secret %q exists and does not belong to this key, or has a finalizer that prevents its "+
			"replacement: delete the Secret with its finalizers, or create the key under another name.", name))
}

// secretFrozen is the verdict on a key whose valid token cannot be signed again by a new signing key.
func secretFrozen(key *v1alpha1.APIKey) conditions.Verdict {
	disabled := ""
	if key.Spec.Disabled {
		disabled = refusedWhileDisabled
	}
	return conditions.Stalled(v1alpha1.ReasonSecretConflict,
		fmt.Sprintf("Secret %q is immutable and has a finalizer that prevents its replacement, so the new "+
			"signing key cannot sign its token, which stays valid until it expires or its signing key is withdrawn: "+
			"remove the Secret's finalizers.", SecretName(key.Name))+disabled)
}
