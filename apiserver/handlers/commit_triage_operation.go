package handlers

import (
	"context"
	"net/http"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// CommitTriageOperation is an operation of the contract.
func (b *Backend) CommitTriageOperation(ctx context.Context, request Request) (Response, error) {
	namespace, err := b.Model.Namespace(request.Organization)
	if err != nil {
		return Response{}, Unavailable(err)
	}
	operation, err := b.Cluster.CommitOperation(ctx, namespace, request.Path.Get("id"), keyPrefix+request.KeyName)
	if err != nil {
		return Response{}, err
	}
	operation = b.Cluster.AwaitOperation(ctx, operation, settled)
	if operation.Status.Phase == v1alpha1.OperationFailed {
		return Response{}, problem.InvalidQuery("the operation has failed: " + render.OperationDetail(operation))
	}
	status := http.StatusOK
	if !settled(operation) {
		status = http.StatusAccepted
	}
	return operationResponse(status, operation)
}
