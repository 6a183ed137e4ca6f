package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// ListAPIKeys is an operation of the contract. It lists the same data that requests are authenticated with.
func (b *Backend) ListAPIKeys(ctx context.Context, request Request) (Response, error) {
	read := func(_ context.Context, namespace string, each func(*v1alpha1.APIKey) error) error {
		for _, key := range b.Keys.In(namespace) {
			if err := each(key); err != nil {
				return err
			}
		}
		return nil
	}
	return listStored(ctx, b, newList("listAPIKeys", request), request, read, render.APIKeyJSON)
}
