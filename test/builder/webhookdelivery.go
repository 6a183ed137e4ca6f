package builder

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// WebhookDeliveryBuilder builds a WebhookDelivery.
type WebhookDeliveryBuilder struct {
	object v1alpha1.WebhookDelivery
}

// WebhookDelivery starts the delivery of a ping to endpoint "endpoint", with an empty object as its
// payload.
func WebhookDelivery(name string, at time.Time) *WebhookDeliveryBuilder {
	return &WebhookDeliveryBuilder{object: v1alpha1.WebhookDelivery{
		TypeMeta:   typeMeta("WebhookDelivery"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.WebhookDeliverySpec{
			EndpointRef: v1alpha1.WebhookEndpointReference{Name: "endpoint"},
			Event: v1alpha1.WebhookEvent{
				ID: "event-of-" + name, Type: "webhook.ping", Time: Time(at),
				Subject: v1alpha1.WebhookEventSubject{Kind: "WebhookEndpoint", Name: "endpoint"},
			},
			Payload: "{}",
		},
	}}
}

// In sets the namespace.
func (b *WebhookDeliveryBuilder) In(namespace string) *WebhookDeliveryBuilder {
	b.object.Namespace = namespace
	return b
}

// Endpoint sets the endpoint.
func (b *WebhookDeliveryBuilder) Endpoint(name string) *WebhookDeliveryBuilder {
	b.object.Spec.EndpointRef.Name = v1alpha1.ResourceName(name)
	return b
}

// Payload sets the bytes that are sent.
func (b *WebhookDeliveryBuilder) Payload(payload string) *WebhookDeliveryBuilder {
	b.object.Spec.Payload = payload
	return b
}

// Mutate changes what has no method of its own.
func (b *WebhookDeliveryBuilder) Mutate(change func(*v1alpha1.WebhookDelivery)) *WebhookDeliveryBuilder {
	change(&b.object)
	return b
}

// Build returns the delivery.
func (b *WebhookDeliveryBuilder) Build() *v1alpha1.WebhookDelivery { return &b.object }
