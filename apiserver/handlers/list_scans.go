package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

// ListScans is an operation of the contract.
func (b *Backend) ListScans(ctx context.Context, request Request) (Response, error) {
	list := newList("listScans", request)
	read := func(page index.Request) (index.Page[content.Part], error) {
		return b.Model.ListScans(request.Organization, readmodel.ScanQuery{
			Request:    page,
			Status:     optional(request.Query, "status"),
			Repository: optional(request.Query, "repo_id"),
			Project:    optional(request.Query, "project_id"),
			Upload:     optional(request.Query, "upload_id"),
		})
	}
	return listModel(ctx, b, list, "scans", read)
}
