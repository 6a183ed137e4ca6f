package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// GetProject is an operation of the contract.
func (b *Backend) GetProject(ctx context.Context, request Request) (Response, error) {
	project, there := tracing.Do(ctx, "read model: project", func() ([]byte, bool) {
		return b.Model.Project(request.Organization, request.Path.Get("id"), request.Path.Get("project_id"))
	})
	if !there {
		return Response{}, problem.NotFound("project")
	}
	return single(project), nil
}
