// Package deliveries reads webhook deliveries from the Kubernetes API.
package deliveries

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// Reader reads deliveries as they are stored. It is safe for concurrent use.
type Reader struct {
	client rest.Interface
}

// NewReader returns a reader of the API server that config names.
func NewReader(config *rest.Config) (*Reader, error) {
	client, err := kube.NewClient(config)
	if err != nil {
		return nil, err
	}
	return &Reader{client: client}, nil
}

// Read returns the delivery as the API server has it now. Its errors are problems.
func (r *Reader) Read(ctx context.Context, namespace, name string) (*v1alpha1.WebhookDelivery, error) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		// No resource can have that name; the client would not even ask.
		return nil, problem.NotFound("webhook delivery")
	}
	delivery := &v1alpha1.WebhookDelivery{}
	err := kube.Get(ctx, r.client, namespace, name, delivery)
	switch {
	case err == nil:
		return delivery, nil
	case apierrors.IsNotFound(err):
		return nil, problem.NotFound("webhook delivery")
	default:
		return nil, problem.TryAgain("the delivery could not be read", err)
	}
}
