package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// GetProject is an operation of the contract.
func (b *Backend) GetProject(_ context.Context, request Request) (Response, error) {
	project, there := b.Model.Project(request.Organization, request.Path.Get("id"), request.Path.Get("project_id"))
	if !there {
		return Response{}, problem.NotFound("project")
	}
	return single(project), nil
}
