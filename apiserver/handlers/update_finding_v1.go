package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// UpdateFindingV1 is an operation of the contract.
func (b *Backend) UpdateFindingV1(ctx context.Context, request Request) (Response, error) {
	var update openapi.FindingV1Update
	if err := request.Body.Into(&update); err != nil {
		return Response{}, err
	}
	decision, err := givenDecision(&update.UserStatus, nil, update.Reason, update.ExpiresAt)
	if err != nil {
		return Response{}, err
	}
	item, err := decide(ctx, request, b.finding(selection{finding: request.Path.Get("id")}), decision)
	if err != nil {
		return Response{}, err
	}
	return tagged(item, item.V1()), nil
}
