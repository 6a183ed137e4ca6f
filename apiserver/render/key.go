package render

import (
	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// APIKeyJSON renders a key, without data that identifies its token. The same key always gives the same bytes.
func APIKeyJSON(k *v1alpha1.APIKey) ([]byte, error) {
	scopes := k.Spec.Scopes
	if len(scopes) == 0 {
		scopes = v1alpha1.DefaultScopes()
	}
	issued, end := k.Status.IssuedAt, keyEnd(k)
	if k.Status.KeyID == "" {
		issued, end = nil, nil // The status remembers the times of the last token.
	}
	return encodeNamed("API key", k.Name, &openapi.APIKey{
		Id:          k.Name,
		Description: k.Spec.Description,
		Scopes:      stringsOf(scopes),
		Disabled:    k.Spec.Disabled,
		IssuedAt:    optionalSecond(issued),
		ExpiresAt:   optionalSecond(end),
		LastUsedAt:  optionalSecond(k.Status.LastUsedAt),
		CreatedAt:   second(k.CreationTimestamp.Time),
		Conditions:  convert(k.Status.Conditions, conditionOf),
	})
}

// keyEnd returns when the key's token ends: if the spec declares an earlier end than the one at issuance, it
// takes effect at once.
func keyEnd(k *v1alpha1.APIKey) *v1alpha1.Time {
	issued, declared := k.Status.ExpiresAt, k.Spec.ExpiresAt
	if issued != nil && declared != nil && declared.Before(issued) {
		return declared
	}
	return issued
}
