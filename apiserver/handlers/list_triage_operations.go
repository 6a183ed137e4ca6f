package handlers

import (
	"context"
	"fmt"
	"slices"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// ListTriageOperations is an operation of the contract. An organization keeps few operations, so each request
// reads all of them from the API server and no replica is behind.
func (b *Backend) ListTriageOperations(ctx context.Context, request Request) (Response, error) {
	list := newList("listTriageOperations", request)
	ids, filtered := request.Query.Lookup("undo")
	undone := listed(ids)
	if filtered && len(undone) == 0 {
		return Response{}, problem.InvalidQuery("undo names no operation").In("undo")
	}
	for _, id := range undone {
		if !kube.IsName(id) {
			return Response{}, problem.InvalidQuery(fmt.Sprintf("undo holds %.80q, which is not a valid id", id)).In("undo")
		}
	}
	read := func(ctx context.Context, namespace string, each func(*v1alpha1.TriageOperation) error) error {
		return b.Cluster.Operations(ctx, namespace, func(o *v1alpha1.TriageOperation) error {
			if filtered && !slices.Contains(undone, string(o.Spec.Undo)) {
				return nil
			}
			return each(o)
		})
	}
	return listStored(ctx, b, list, request, read, render.TriageOperationJSON)
}
