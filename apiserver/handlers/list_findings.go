package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// ListFindingsV1 is an operation of the contract.
func (b *Backend) ListFindingsV1(ctx context.Context, request Request) (Response, error) {
	return b.listFindings(ctx, "listFindingsV1", request, (*readmodel.Item).V1)
}

// ListFindingsV2 is an operation of the contract.
func (b *Backend) ListFindingsV2(ctx context.Context, request Request) (Response, error) {
	return b.listFindings(ctx, "listFindingsV2", request, (*readmodel.Item).V2)
}

func (b *Backend) listFindings(ctx context.Context, id string, request Request, shape func(*readmodel.Item) content.Part) (Response, error) {
	list := newList(id, request, findingFilters...)
	after, err := list.position(b.Cursors)
	if err != nil {
		return Response{}, err
	}
	page, err := tracing.Do(ctx, "read model: list findings", func() (readmodel.Page[*readmodel.Item], error) {
		return b.Model.ListFindings(request.Organization, readmodel.FindingQuery{
			Sort: list.sort(), Order: list.order(), Limit: list.limit, After: after,
			Shape: shape, Filter: findingFilter(request.Query),
		})
	})
	if err != nil {
		return Response{}, unavailable(err)
	}
	return respond(b.Cursors, list, page, shape)
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
