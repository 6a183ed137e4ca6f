package builder

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// WebhookEndpointBuilder builds a WebhookEndpoint.
type WebhookEndpointBuilder struct {
	object v1alpha1.WebhookEndpoint
}

// WebhookEndpoint starts an endpoint that receives all events, at a URL that does not resolve.
func WebhookEndpoint(name string) *WebhookEndpointBuilder {
	return &WebhookEndpointBuilder{object: v1alpha1.WebhookEndpoint{
		TypeMeta:   typeMeta("WebhookEndpoint"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.WebhookEndpointSpec{URL: "https://hooks.invalid/" + name},
	}}
}

// In sets the namespace.
func (b *WebhookEndpointBuilder) In(namespace string) *WebhookEndpointBuilder {
	b.object.Namespace = namespace
	return b
}

// URL sets where events are sent.
func (b *WebhookEndpointBuilder) URL(url string) *WebhookEndpointBuilder {
	b.object.Spec.URL = url
	return b
}

// Events sets which events are sent.
func (b *WebhookEndpointBuilder) Events(events ...v1alpha1.WebhookEventPattern) *WebhookEndpointBuilder {
	b.object.Spec.Events = events
	return b
}

// Batched makes the endpoint receive the changes of scans, operations and policies in pages.
func (b *WebhookEndpointBuilder) Batched() *WebhookEndpointBuilder {
	b.object.Spec.Batch = v1alpha1.WebhookBatchPerScan
	return b
}

// Secret names the Secret that holds the signing secret.
func (b *WebhookEndpointBuilder) Secret(name string) *WebhookEndpointBuilder {
	b.object.Spec.SecretRef = &v1alpha1.SecretReference{Name: v1alpha1.ResourceName(name)}
	return b
}

// Mutate changes what has no method of its own.
func (b *WebhookEndpointBuilder) Mutate(change func(*v1alpha1.WebhookEndpoint)) *WebhookEndpointBuilder {
	change(&b.object)
	return b
}

// Build returns the endpoint.
func (b *WebhookEndpointBuilder) Build() *v1alpha1.WebhookEndpoint { return &b.object }
