package cluster

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// WebhookDelivery returns the delivery as it is stored now.
func (c *Client) WebhookDelivery(ctx context.Context, namespace, name string) (*v1alpha1.WebhookDelivery, error) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		// No resource can have that name; the client would not even ask.
		return nil, problem.NotFound("webhook delivery")
	}
	delivery := &v1alpha1.WebhookDelivery{}
	err := kube.Get(ctx, c.rest, namespace, name, delivery)
	switch {
	case err == nil:
		return delivery, nil
	case apierrors.IsNotFound(err):
		return nil, problem.NotFound("webhook delivery")
	default:
		return nil, problem.TryAgain("the delivery could not be read", err)
	}
}
