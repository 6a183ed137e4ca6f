package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// GetWebhookDelivery is an operation of the contract.
func (b *Backend) GetWebhookDelivery(ctx context.Context, request Request) (Response, error) {
	delivery, there := tracing.Do(ctx, "read model: webhook delivery", func() ([]byte, bool) {
		return b.Model.WebhookDeliveryJSON(request.Organization, request.Path.Get("id"))
	})
	if !there {
		return Response{}, problem.NotFound("webhook delivery")
	}
	return single(delivery), nil
}
