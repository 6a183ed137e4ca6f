package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/triage"
)

func updateFindingV1(backend Backend) Operation {
	return Operation{
		ID: "updateFindingV1", Scope: v1alpha1.ScopeFindingsTriage,
		Handle: func(ctx context.Context, request Request) (Response, error) {
			var update openapi.FindingV1Update
			if err := request.Body.Into(&update); err != nil {
				return Response{}, err
			}
			to := v1alpha1.UserStatus(update.UserStatus)
			selected := selection{finding: request.Path.Get("id")}
			item, err := decide(ctx, backend, request, selected, triage.Decision{UserStatus: &to})
			if err != nil {
				return Response{}, err
			}
			return findingResponse(item, item.V1), nil
		},
	}
}
