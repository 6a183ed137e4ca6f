package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// GetFindingV2 is an operation of the contract.
func (b *Backend) GetFindingV2(_ context.Context, request Request) (Response, error) {
	item, there := b.Model.Finding(request.Organization, request.Path.Get("finding_id"))
	if !there || item.RepoID != request.Path.Get("repo_id") || item.ProjectID != request.Path.Get("project_id") {
		return Response{}, problem.NotFound("finding")
	}
	return findingResponse(item, item.V2), nil
}
