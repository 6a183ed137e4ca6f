package apikey

import (
	"fmt"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
)

// judge says what the settled status means for who uses the key.
func judge(s *scope) conditions.Verdict {
	status := s.key.Status
	switch {
	case status.KeyID == "" || !s.now.Before(status.ExpiresAt.Time):
		return conditions.Verdict{
			Stalled: true,
			Reason:  v1alpha1.ReasonExpired,
			Message: "the key's life is over; see to it that spec.expiresAt is not in the past and raise spec.rotation.serial for a new token",
		}
	case s.key.Spec.Disabled:
		return conditions.Verdict{
			Reason:  v1alpha1.ReasonDisabled,
			Message: "spec.disabled is set: requests with this key are refused",
		}
	}
	return conditions.Ready(fmt.Sprintf("the token is in Secret %s under the key %q", status.SecretRef.Name, v1alpha1.APIKeyTokenKey))
}

func organizationNotFound(namespace string) conditions.Verdict {
	return conditions.Verdict{
		Stalled: true,
		Reason:  v1alpha1.ReasonOrganizationNotFound,
		Message: fmt.Sprintf("namespace %s belongs to no Organization; create the key in the namespace that an Organization names in its status", namespace),
	}
}

func secretConflict(name string) conditions.Verdict {
	return conditions.Verdict{
		Stalled: true,
		Reason:  v1alpha1.ReasonSecretConflict,
		Message: fmt.Sprintf("Secret %s is there and is not this key's; remove the Secret, or make the key under another name", name),
	}
}
