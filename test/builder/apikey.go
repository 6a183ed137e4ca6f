package builder

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// APIKeyBuilder builds an APIKey.
type APIKeyBuilder struct {
	base[*APIKeyBuilder, *v1alpha1.APIKey]
}

// APIKey starts a key with the default scopes and lifetime.
func APIKey(name string) *APIKeyBuilder {
	b := &APIKeyBuilder{}
	return b.start(b, "APIKey", name, &v1alpha1.APIKey{})
}

// Scopes sets what the key may do.
func (b *APIKeyBuilder) Scopes(scopes ...v1alpha1.Scope) *APIKeyBuilder {
	b.object.Spec.Scopes = scopes
	return b
}

// Disabled disables the key.
func (b *APIKeyBuilder) Disabled() *APIKeyBuilder {
	b.object.Spec.Disabled = true
	return b
}
