package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

func getProject(backend Backend) Operation {
	return Operation{
		ID: "getProject", Scope: v1alpha1.ScopeReposRead,
		Handle: func(_ context.Context, request Request) (Response, error) {
			project, there := backend.Model.Project(request.Organization, request.Path.Get("id"), request.Path.Get("project_id"))
			if !there {
				return Response{}, problem.NotFound("project")
			}
			return single(project), nil
		},
	}
}
