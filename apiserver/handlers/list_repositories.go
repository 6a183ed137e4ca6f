package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

// ListRepositories is an operation of the contract.
func (b *Backend) ListRepositories(ctx context.Context, request Request) (Response, error) {
	list := newList("listRepositories", request)
	read := func(after *index.Position) (index.Page[content.Part], error) {
		return b.Model.ListRepositories(request.Organization, readmodel.RepositoryQuery{
			Sort: list.sort(), Order: list.order(), Limit: list.limit, After: after,
		})
	}
	return listModel(ctx, b, list, "repositories", read, asIs)
}
