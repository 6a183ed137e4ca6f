package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

// ListWebhookDeliveries is an operation of the contract.
func (b *Backend) ListWebhookDeliveries(ctx context.Context, request Request) (Response, error) {
	list := newList("listWebhookDeliveries", request)
	read := func(page index.Request) (index.Page[content.Part], error) {
		return b.Model.ListWebhookDeliveries(request.Organization, readmodel.DeliveryQuery{
			Request:  page,
			Status:   optional(request.Query, "status"),
			Event:    optional(request.Query, "event"),
			Endpoint: optional(request.Query, "endpoint_id"),
			Subject:  optional(request.Query, "subject_id"),
		})
	}
	return listModel(ctx, b, list, "webhook deliveries", read)
}
