package handlers

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// CommitTriageOperation is an operation of the contract.
func (b *Backend) CommitTriageOperation(ctx context.Context, request Request) (Response, error) {
	var given openapi.TriageOperationCommit
	if err := request.Body.Into(&given); err != nil {
		return Response{}, err
	}
	id, uid := request.Path.Get("id"), types.UID(ptr.Deref(given.Uid, ""))
	operation, err := b.Cluster.CommitOperation(ctx, request.Namespace, id, uid, request.Author())
	if err != nil {
		return Response{}, err
	}
	operation, err = b.Cluster.AwaitOperation(ctx, operation, settled)
	if err != nil {
		return Response{}, err
	}
	return commitOutcome(operation)
}

// commitOutcome answers with an operation that a request has committed.
func commitOutcome(operation *v1alpha1.TriageOperation) (Response, error) {
	return operationOutcome(operation, http.StatusOK, problem.InvalidBody)
}
