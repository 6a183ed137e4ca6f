package builder

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// WebhookEndpointBuilder builds a WebhookEndpoint.
type WebhookEndpointBuilder struct {
	base[*WebhookEndpointBuilder, *v1alpha1.WebhookEndpoint]
}

// WebhookEndpoint starts an endpoint that receives all events, at a URL that does not resolve.
func WebhookEndpoint(name string) *WebhookEndpointBuilder {
	b := &WebhookEndpointBuilder{}
	return b.start(b, "WebhookEndpoint", name, &v1alpha1.WebhookEndpoint{
		Spec: v1alpha1.WebhookEndpointSpec{URL: "https://hooks.invalid/" + name},
	})
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
