package builder

import (
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// WebhookDeliveryBuilder builds a WebhookDelivery.
type WebhookDeliveryBuilder struct {
	base[*WebhookDeliveryBuilder, *v1alpha1.WebhookDelivery]
}

// WebhookDelivery starts the delivery of a ping to endpoint "endpoint", with an empty object as its
// payload.
func WebhookDelivery(name string, at time.Time) *WebhookDeliveryBuilder {
	b := &WebhookDeliveryBuilder{}
	return b.start(b, "WebhookDelivery", name, &v1alpha1.WebhookDelivery{
		Spec: v1alpha1.WebhookDeliverySpec{
			EndpointRef: v1alpha1.WebhookEndpointReference{Name: "endpoint"},
			Event: v1alpha1.WebhookEvent{
				ID: name, Type: "webhook.ping", Time: v1alpha1.NewTime(at),
				Subject: v1alpha1.WebhookEventSubject{Kind: "WebhookEndpoint", Name: "endpoint"},
			},
			Payload: "{}",
		},
	})
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
