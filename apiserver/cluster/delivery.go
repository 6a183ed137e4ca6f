package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

const deliveryNoun = "webhook delivery"

// WebhookDelivery returns the delivery as it is stored now.
func (c *Client) WebhookDelivery(ctx context.Context, namespace, name string) (*v1alpha1.WebhookDelivery, error) {
	return read[*v1alpha1.WebhookDelivery](ctx, c.rest, namespace, name, deliveryNoun)
}

// Redeliver requests another attempt of the delivery on behalf of an author. It returns the delivery once the
// controllers have taken up the request, or as it is after ten seconds.
func (c *Client) Redeliver(ctx context.Context, namespace, name, by string) (*v1alpha1.WebhookDelivery, error) {
	if !kube.IsName(name) {
		return nil, problem.NotFound(deliveryNoun)
	}
	annotation, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		v1alpha1.RedeliverAnnotation: by + "/" + strings.ToLower(rand.Text()),
	}}})
	if err != nil {
		return nil, err
	}
	asked, err := patch[*v1alpha1.WebhookDelivery](ctx, c.rest, namespace, name, annotation)
	if err != nil {
		return nil, explain(deliveryNoun, err)
	}
	taken := func(d *v1alpha1.WebhookDelivery) bool { return webhooks.RedeliveryAsked(d) == "" }
	return await(ctx, c, asked, taken, "the webhook delivery was deleted in the meantime")
}
