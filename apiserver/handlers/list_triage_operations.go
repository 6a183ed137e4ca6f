package handlers

import (
	"context"
	"slices"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// ListTriageOperations is an operation of the contract. An organization keeps few operations, so each request
// reads all of them from the API server and no replica is behind.
func (b *Backend) ListTriageOperations(ctx context.Context, request Request) (Response, error) {
	list := newList("listTriageOperations", request, "undo")
	ids, filtered := request.Query.Lookup("undo")
	undone := strings.Split(ids, ",")
	read := func(ctx context.Context, namespace string, each func(*v1alpha1.TriageOperation) error) error {
		return b.Cluster.Operations(ctx, namespace, func(o *v1alpha1.TriageOperation) error {
			if filtered && (o.Spec.Undo == "" || !slices.Contains(undone, string(o.Spec.Undo))) {
				return nil
			}
			return each(o)
		})
	}
	return listStored(ctx, b, list, request, read, render.TriageOperationJSON)
}
