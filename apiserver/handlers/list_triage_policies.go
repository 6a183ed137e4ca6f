package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// ListTriagePolicies is an operation of the contract. An organization has few policies, so that all are read each time
// and no replica is behind.
func (b *Backend) ListTriagePolicies(ctx context.Context, request Request) (Response, error) {
	list := newList("listTriagePolicies", request)
	after, err := list.position(b.Cursors)
	if err != nil {
		return Response{}, err
	}
	namespace, err := b.Model.Namespace(request.Organization)
	if err != nil {
		return Response{}, unavailable(err)
	}
	stored, err := b.Cluster.Policies(ctx, namespace)
	if err != nil {
		return Response{}, err
	}
	rows := index.New(rowLayout)
	for _, policy := range stored {
		shown, err := render.TriagePolicyJSON(policy)
		if err != nil {
			return Response{}, err
		}
		rows.Put(policy.Name, row{render.Timestamp(policy.CreationTimestamp.Time), shown})
	}
	return b.respondRows(list, rows, after)
}
