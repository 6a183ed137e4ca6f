package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// ListRepositories is an operation of the contract.
func (b *Backend) ListRepositories(ctx context.Context, request Request) (Response, error) {
	list := newList("listRepositories", request)
	after, err := list.position(b.Cursors)
	if err != nil {
		return Response{}, err
	}
	page, err := tracing.Do(ctx, "read model: list repositories", func() (index.Page[content.Part], error) {
		return b.Model.ListRepositories(request.Organization, readmodel.RepositoryQuery{
			Sort: list.sort(), Order: list.order(), Limit: list.limit, After: after,
		})
	})
	if err != nil {
		return Response{}, unavailable(err)
	}
	return respond(b.Cursors, list, page, asIs)
}
