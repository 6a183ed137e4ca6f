package handlers

import (
	"context"
	"net/http"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// CommitTriageOperation is an operation of the contract.
func (b *Backend) CommitTriageOperation(ctx context.Context, request Request) (Response, error) {
	id, by := request.Path.Get("id"), request.Author()
	operation, err := b.Cluster.CommitOperation(ctx, request.Namespace, id, by)
	if err != nil {
		return Response{}, err
	}
	return operationOutcome(b.Cluster.AwaitOperation(ctx, operation, settled), http.StatusOK, problem.InvalidQuery)
}
