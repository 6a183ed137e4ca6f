package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// GetFindingV2 is an operation of the contract.
func (b *Backend) GetFindingV2(ctx context.Context, request Request) (Response, error) {
	item, there := tracing.Do(ctx, "read model: finding", func() (*readmodel.Item, bool) {
		return b.Model.FindingIn(request.Organization,
			request.Path.Get("repo_id"), request.Path.Get("project_id"), request.Path.Get("finding_id"))
	})
	if !there {
		return Response{}, problem.NotFound("finding")
	}
	return findingResponse(item, item.V2()), nil
}
