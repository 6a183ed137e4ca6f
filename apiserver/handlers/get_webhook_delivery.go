package handlers

import "context"

// GetWebhookDelivery is an operation of the contract.
func (b *Backend) GetWebhookDelivery(ctx context.Context, request Request) (Response, error) {
	return findJSON(ctx, "webhook delivery", func() ([]byte, bool) {
		return b.Model.WebhookDeliveryJSON(request.Organization, request.Path.Get("id"))
	})
}
