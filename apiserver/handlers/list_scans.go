package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// ListScans is an operation of the contract.
func (b *Backend) ListScans(ctx context.Context, request Request) (Response, error) {
	list := newList("listScans", request, "repo_id", "project_id", "status", "upload_id")
	after, err := list.position(b.Cursors)
	if err != nil {
		return Response{}, err
	}
	page, err := tracing.Do(ctx, "read model: list scans", func() (index.Page[content.Part], error) {
		return b.Model.ListScans(request.Organization, readmodel.ScanQuery{
			Order: list.order(), Limit: list.limit, After: after,
			Status:     optional(request.Query, "status"),
			Repository: optional(request.Query, "repo_id"),
			Project:    optional(request.Query, "project_id"),
			Upload:     optional(request.Query, "upload_id"),
		})
	})
	if err != nil {
		return Response{}, unavailable(err)
	}
	return respond(b.Cursors, list, page, asIs)
}
