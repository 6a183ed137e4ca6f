package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
)

func listFindingsV1(backend Backend) Operation {
	shape := func(item *readmodel.Item) []byte { return item.V1 }
	return listFindings("listFindingsV1", backend, shape)
}

func listFindingsV2(backend Backend) Operation {
	shape := func(item *readmodel.Item) []byte { return item.V2 }
	return listFindings("listFindingsV2", backend, shape)
}

func listFindings(id string, backend Backend, shape func(*readmodel.Item) []byte) Operation {
	return Operation{
		ID: id, Scope: v1alpha1.ScopeFindingsRead,
		Handle: func(_ context.Context, request Request) (Response, error) {
			list := newList(id, request, findingFilters...)
			after, err := list.position(backend.Cursors)
			if err != nil {
				return Response{}, err
			}
			page, err := backend.Model.ListFindings(request.Organization, readmodel.FindingQuery{
				Sort: list.sort(), Order: list.order(), Size: list.size, After: after,
				Filter: findingFilter(request.Query),
			})
			if err != nil {
				return Response{}, unavailable(err)
			}
			return respond(backend.Cursors, list, page, shape)
		},
	}
}

// findingFilters are the parameters that leave findings out.
var findingFilters = []string{"status", "user_status", "severity", "repo_id", "project_id", "class"}

func findingFilter(query openapi.Parameters) readmodel.FindingFilter {
	return readmodel.FindingFilter{
		Status:     optional(query, "status"),
		UserStatus: optional(query, "user_status"),
		Severity:   optional(query, "severity"),
		RepoID:     optional(query, "repo_id"),
		ProjectID:  optional(query, "project_id"),
		Class:      optional(query, "class"),
	}
}
