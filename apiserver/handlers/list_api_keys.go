package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// ListAPIKeys is an operation of the contract. It lists the same data that requests are authenticated with.
func (b *Backend) ListAPIKeys(_ context.Context, request Request) (Response, error) {
	list := newList("listAPIKeys", request)
	after, err := list.position(b.Cursors)
	if err != nil {
		return Response{}, err
	}
	rows := index.New(rowLayout)
	for _, key := range b.Keys.In(request.Key.Namespace) {
		shown, err := render.APIKeyJSON(key)
		if err != nil {
			return Response{}, err
		}
		rows.Put(key.Name, row{render.Timestamp(key.CreationTimestamp.Time), shown})
	}
	return b.respondRows(list, rows, after)
}
