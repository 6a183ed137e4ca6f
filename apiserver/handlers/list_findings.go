package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

// ListFindingsV1 is an operation of the contract.
func (b *Backend) ListFindingsV1(ctx context.Context, request Request) (Response, error) {
	return b.listFindings(ctx, "listFindingsV1", request, (*readmodel.Item).V1)
}

// ListFindingsV2 is an operation of the contract.
func (b *Backend) ListFindingsV2(ctx context.Context, request Request) (Response, error) {
	return b.listFindings(ctx, "listFindingsV2", request, (*readmodel.Item).V2)
}

// ListFindingsFull is an operation of the contract.
func (b *Backend) ListFindingsFull(ctx context.Context, request Request) (Response, error) {
	return b.listFindings(ctx, "listFindingsFull", request, (*readmodel.Item).Full)
}

func (b *Backend) listFindings(ctx context.Context, id string, request Request,
	shape func(*readmodel.Item) content.Part) (Response, error) {
	filter, err := findingFilter(request.Query)
	if err != nil {
		return Response{}, err
	}
	list := newList(id, request)
	read := func(asked index.Request) (index.Page[content.Part], error) {
		page, err := b.Model.ListFindings(request.Organization, readmodel.FindingQuery{
			Request: asked, Shape: shape, Filter: filter,
		})
		return index.Map(page, shape), err
	}
	return listModel(ctx, b, list, "findings", read)
}
