package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// UpdateFindingV1 is an operation of the contract.
func (b *Backend) UpdateFindingV1(ctx context.Context, request Request) (Response, error) {
	var update openapi.FindingV1Update
	if err := request.Body.Into(&update); err != nil {
		return Response{}, err
	}
	to := v1alpha1.UserStatus(update.UserStatus)
	decision := findingstate.Decision{UserStatus: &to}
	if err := addGrounds(&decision, update.Reason, update.ExpiresAt); err != nil {
		return Response{}, err
	}
	item, err := b.decide(ctx, request, selection{finding: request.Path.Get("id")}, decision)
	if err != nil {
		return Response{}, err
	}
	return findingResponse(item, item.V1()), nil
}
