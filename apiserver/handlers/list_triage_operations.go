package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// ListTriageOperations is an operation of the contract. An organization keeps few operations, so that all are read each
// time and no replica is behind.
func (b *Backend) ListTriageOperations(ctx context.Context, request Request) (Response, error) {
	list := newList("listTriageOperations", request)
	after, err := list.position(b.Cursors)
	if err != nil {
		return Response{}, err
	}
	namespace, err := b.Model.Namespace(request.Organization)
	if err != nil {
		return Response{}, unavailable(err)
	}
	stored, err := b.Cluster.Operations(ctx, namespace)
	if err != nil {
		return Response{}, err
	}
	rows := index.New(rowLayout)
	for _, operation := range stored {
		shown, err := render.TriageOperationJSON(operation)
		if err != nil {
			return Response{}, err
		}
		rows.Put(operation.Name, row{render.Timestamp(operation.CreationTimestamp.Time), shown})
	}
	return b.respondRows(list, rows, after)
}
