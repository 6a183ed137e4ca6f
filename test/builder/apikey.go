package builder

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// APIKeyBuilder builds an APIKey.
type APIKeyBuilder struct{ object v1alpha1.APIKey }

// APIKey starts a key with the default scopes and lifetime.
func APIKey(name string) *APIKeyBuilder {
	return &APIKeyBuilder{object: v1alpha1.APIKey{
		TypeMeta:   typeMeta("APIKey"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}}
}

// In sets the namespace.
func (b *APIKeyBuilder) In(namespace string) *APIKeyBuilder {
	b.object.Namespace = namespace
	return b
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

// Mutate changes what has no method of its own.
func (b *APIKeyBuilder) Mutate(change func(*v1alpha1.APIKey)) *APIKeyBuilder {
	change(&b.object)
	return b
}

// Build returns the key.
func (b *APIKeyBuilder) Build() *v1alpha1.APIKey { return &b.object }
