package handlers

import (
	"context"
	"net/http"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// GetTriageOperation is an operation of the contract.
func (b *Backend) GetTriageOperation(ctx context.Context, request Request) (Response, error) {
	operation, err := b.operation(ctx, request)
	if err != nil {
		return Response{}, err
	}
	return operationResponse(http.StatusOK, operation)
}

// operation returns the operation in the path as it is stored now.
func (b *Backend) operation(ctx context.Context, request Request) (*v1alpha1.TriageOperation, error) {
	return b.Cluster.Operation(ctx, request.Namespace, request.Path.Get("id"))
}
