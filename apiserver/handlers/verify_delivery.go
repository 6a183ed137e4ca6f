package handlers

import (
	"context"
	"encoding/json"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// VerifyWebhookDelivery is an operation of the contract.
func (b *Backend) VerifyWebhookDelivery(_ context.Context, request Request) (Response, error) {
	var received openapi.WebhookVerificationRequest
	if err := request.Body.Into(&received); err != nil {
		return Response{}, err
	}
	delivery, there := b.Model.WebhookDelivery(request.Organization, request.Path.Get("id"))
	if !there {
		return Response{}, problem.NotFound("webhook delivery")
	}
	status := webhooks.Verify(delivery, received.Payload, received.Signature, time.Now())
	verdict, err := json.Marshal(openapi.WebhookVerification{
		DeliveryId: delivery.Name,
		Valid:      status.Valid(),
		Status:     openapi.WebhookVerificationStatus(status),
		Message:    status.Message(),
	})
	if err != nil {
		return Response{}, err
	}
	return Response{Body: [][]byte{verdict}}, nil
}
