package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// ListTriageOperations is an operation of the contract. An organization keeps few operations, so that all are read each
// time and no replica is behind.
func (b *Backend) ListTriageOperations(ctx context.Context, request Request) (Response, error) {
	list := newList("listTriageOperations", request)
	return listStored(ctx, b, list, request, b.Cluster.Operations, render.TriageOperationJSON)
}
