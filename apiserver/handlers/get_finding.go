package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

func getFindingV2(backend Backend) Operation {
	return Operation{
		ID: "getFindingV2", Scope: v1alpha1.ScopeFindingsRead,
		Handle: func(_ context.Context, request Request) (Response, error) {
			item, there := backend.Model.Finding(request.Organization, request.Path.Get("finding_id"))
			if !there || item.RepoID != request.Path.Get("repo_id") || item.ProjectID != request.Path.Get("project_id") {
				return Response{}, problem.NotFound("finding")
			}
			return findingResponse(item, item.V2), nil
		},
	}
}
