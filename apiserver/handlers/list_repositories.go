package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
)

func listRepositories(backend Backend) Operation {
	const id = "listRepositories"
	return Operation{
		ID: id, Scope: v1alpha1.ScopeReposRead,
		Handle: func(_ context.Context, request Request) (Response, error) {
			list := newList(id, request)
			after, err := list.position(backend.Cursors)
			if err != nil {
				return Response{}, err
			}
			page, err := backend.Model.ListRepositories(request.Organization, readmodel.RepositoryQuery{
				Sort: list.sort(), Order: list.order(), Size: list.size, After: after,
			})
			if err != nil {
				return Response{}, unavailable(err)
			}
			return respond(backend.Cursors, list, page, asIs)
		},
	}
}
