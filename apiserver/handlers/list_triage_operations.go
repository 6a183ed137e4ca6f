package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// shownOperation is a row of the list.
type shownOperation struct {
	createdAt string
	json      []byte
}

var operationLayout = &index.Layout[shownOperation]{
	Sorts:  []index.Sort{readmodel.SortCreatedAt},
	Values: func(o shownOperation) []string { return []string{o.createdAt} },
	Keys:   func(shownOperation) []index.Key { return []index.Key{{Field: index.Everything}} },
}

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
	rows := index.New(operationLayout)
	for _, operation := range stored {
		shown, err := render.TriageOperationJSON(operation)
		if err != nil {
			return Response{}, err
		}
		rows.Put(operation.Name, shownOperation{render.Timestamp(operation.CreationTimestamp.Time), shown})
	}
	page := rows.List(operationLayout.Query(list.sort(), list.order(), list.limit, after),
		rows.Pick(index.Everything, "", index.AnyFacet), func(o shownOperation) int { return len(o.json) })
	return respond(b.Cursors, list, page, func(o shownOperation) content.Part { return content.Of(o.json) })
}
