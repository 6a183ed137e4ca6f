package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

const deliveryNoun = "webhook delivery"

// WebhookDelivery returns the delivery as it is stored now.
func (c *Client) WebhookDelivery(ctx context.Context, namespace, name string) (*v1alpha1.WebhookDelivery, error) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		// No resource can have that name; the client would return an error without a request.
		return nil, problem.NotFound(deliveryNoun)
	}
	delivery := &v1alpha1.WebhookDelivery{}
	err := kube.Get(ctx, c.rest, namespace, name, delivery)
	switch {
	case err == nil:
		return delivery, nil
	case apierrors.IsNotFound(err):
		return nil, problem.NotFound(deliveryNoun)
	default:
		return nil, problem.TryAgain("the delivery could not be read", err)
	}
}

// Redeliver requests another attempt of the delivery on behalf of an author. It returns the delivery once the
// controllers have taken up the request, or as it is after ten seconds.
func (c *Client) Redeliver(ctx context.Context, namespace, name, by string) (*v1alpha1.WebhookDelivery, error) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, problem.NotFound(deliveryNoun)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		v1alpha1.RedeliverAnnotation: by + "/" + strings.ToLower(rand.Text()),
	}}})
	if err != nil {
		return nil, err
	}
	asked := &v1alpha1.WebhookDelivery{}
	err = func() error {
		ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
		defer cancel()
		return c.rest.Patch(types.MergePatchType).Namespace(namespace).Resource("webhookdeliveries").Name(name).
			Param("fieldManager", v1alpha1.APIFieldManager).Body(patch).Do(ctx).Into(asked)
	}()
	if err != nil {
		return nil, explain(deliveryNoun, err)
	}
	return await(ctx, c, asked, func(d *v1alpha1.WebhookDelivery) bool { return webhooks.RedeliveryAsked(d) == "" }), nil
}
