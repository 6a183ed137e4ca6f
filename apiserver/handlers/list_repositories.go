package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
)

// ListRepositories is an operation of the contract.
func (b *Backend) ListRepositories(ctx context.Context, request Request) (Response, error) {
	list := newList("listRepositories", request)
	read := func(page index.Request) (index.Page[content.Part], error) {
		return b.Model.ListRepositories(request.Organization, page)
	}
	return listModel(ctx, b, list, "repositories", read)
}
