package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
)

// GetFinding is an operation of the contract.
func (b *Backend) GetFinding(ctx context.Context, request Request) (Response, error) {
	item, err := b.findingByID(ctx, request)
	if err != nil {
		return Response{}, err
	}
	return tagged(item, item.Full()), nil
}

// GetFindingHistory is an operation of the contract.
func (b *Backend) GetFindingHistory(ctx context.Context, request Request) (Response, error) {
	item, err := b.findingByID(ctx, request)
	if err != nil {
		return Response{}, err
	}
	history, err := item.History(func(scan string) string { return b.Model.ImportedBy(request.Organization, scan) })
	return single(history), err
}

func (b *Backend) findingByID(ctx context.Context, request Request) (*readmodel.Item, error) {
	return find(ctx, "finding", func() (*readmodel.Item, bool) {
		return b.Model.Finding(request.Organization, request.Path.Get("id"))
	})
}

// GetFindingV2 is an operation of the contract.
func (b *Backend) GetFindingV2(ctx context.Context, request Request) (Response, error) {
	item, err := find(ctx, "finding", func() (*readmodel.Item, bool) {
		return b.Model.FindingIn(request.Organization,
			request.Path.Get("repo_id"), request.Path.Get("project_id"), request.Path.Get("finding_id"))
	})
	if err != nil {
		return Response{}, err
	}
	return tagged(item, item.V2()), nil
}
