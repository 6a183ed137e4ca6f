package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// VerifyWebhookDelivery is an operation of the contract.
func (b *Backend) VerifyWebhookDelivery(ctx context.Context, request Request) (Response, error) {
	var received openapi.WebhookVerificationRequest
	if err := request.Body.Into(&received); err != nil {
		return Response{}, err
	}
	status, err := b.verify(ctx, request, received)
	if err != nil {
		return Response{}, err
	}
	verdict, err := render.JSON(openapi.WebhookVerification{
		DeliveryId: request.Path.Get("id"),
		Valid:      status.Valid(),
		Status:     openapi.WebhookVerificationStatus(status),
		Message:    status.Message(),
	})
	return untagged(http.StatusOK, verdict), err
}

// verify checks against the delivery in the model and, if that does not confirm it, against the stored one. An
// attempt is stored before its request is sent, and a receiver may ask about it before this replica's watch has
// delivered it: it must not be told that the request is not genuine.
func (b *Backend) verify(ctx context.Context, request Request,
	received openapi.WebhookVerificationRequest) (webhooks.VerificationStatus, error) {
	id := request.Path.Get("id")
	sent, there := tracing.Do(ctx, "read model: webhook delivery", func() (*webhooks.Sent, bool) {
		return b.Model.SentWith(request.Organization, id)
	})
	if there {
		if status := sent.Verify(received.Payload, received.Signature, time.Now()); status.Valid() {
			return status, nil
		}
	}
	stored, err := b.Cluster.WebhookDelivery(ctx, request.Namespace, id)
	if err != nil {
		return "", err
	}
	return webhooks.Verify(stored, received.Payload, received.Signature, time.Now()), nil
}
