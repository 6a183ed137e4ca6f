package handlers

import (
	"context"
	"net/http"

	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// RedeliverWebhookDelivery is an operation of the contract.
func (b *Backend) RedeliverWebhookDelivery(ctx context.Context, request Request) (Response, error) {
	delivery, err := b.Cluster.Redeliver(ctx, request.Namespace, request.Path.Get("id"), request.Author())
	if err != nil {
		return Response{}, err
	}
	if err := b.Model.ApplyDelivery(delivery); err != nil {
		return Response{}, err
	}
	shown, err := render.WebhookDeliveryJSON(delivery)
	return untagged(http.StatusAccepted, shown), err
}
