package webhookdelivery

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// followSecrets copies the expiry of the endpoint's secrets to the recorded signatures, which verification needs.
// Signatures of unlisted secrets stay unchanged, unless the secret was dropped from a full list: see droppedBy.
func followSecrets(s *scope) {
	if s.endpoint == nil {
		return
	}
	known := map[string]*v1alpha1.Time{}
	for _, secret := range s.endpoint.Status.Secrets {
		known[secret.ID] = secret.ExpiresAt
	}
	dropped := droppedBy(s.endpoint.Status.Secrets)
	for i := range s.Status.Attempts {
		signed := s.Status.Attempts[i].Signatures
		for j := range signed {
			end, listed := known[signed[j].SecretID]
			later := signed[j].ExpiresAt == nil || dropped.Before(signed[j].ExpiresAt)
			switch {
			case listed:
				signed[j].ExpiresAt = end.DeepCopy()
			case later && dropped != nil && !s.Status.Attempts[i].At.After(dropped.Time):
				signed[j].ExpiresAt = dropped.DeepCopy()
			}
		}
	}
}

// outlivesEndpoint reports whether a signature is still valid although the cache does not have the delivery's endpoint.
func outlivesEndpoint(s *scope) bool {
	return s.endpoint == nil && s.Object.Spec.EndpointRef.UID != "" && len(validSignatures(s)) > 0
}

// endSignatures records that the signatures have expired, because the endpoint does not exist. Its own Secret was
// deleted with it, and a rotation of another Secret would go unnoticed.
func endSignatures(s *scope) {
	for _, signed := range validSignatures(s) {
		signed.ExpiresAt = new(v1alpha1.NewTime(s.Now))
	}
}

func validSignatures(s *scope) (valid []*v1alpha1.WebhookSignature) {
	for i := range s.Status.Attempts {
		signed := s.Status.Attempts[i].Signatures
		for j := range signed {
			if end := signed[j].ExpiresAt; end == nil || end.After(s.Now) {
				valid = append(valid, &signed[j])
			}
		}
	}
	return valid
}

// droppedBy returns a time by which all secrets that a full list has dropped had expired: the first expiry in the list,
// since a full list drops its oldest. It is nil if the list is not full. Signatures from after that time are not
// affected: the cache does not list their secret yet.
func droppedBy(secrets []v1alpha1.WebhookSecretStatus) *v1alpha1.Time {
	if len(secrets) < v1alpha1.MaxWebhookSecrets {
		return nil
	}
	var first *v1alpha1.Time
	for _, secret := range secrets {
		if end := secret.ExpiresAt; end != nil && (first == nil || end.Before(first)) {
			first = end
		}
	}
	return first
}
