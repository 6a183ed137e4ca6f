package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// GetRepository is an operation of the contract.
func (b *Backend) GetRepository(ctx context.Context, request Request) (Response, error) {
	repository, there := tracing.Do(ctx, "read model: repository", func() ([]byte, bool) {
		return b.Model.Repository(request.Organization, request.Path.Get("id"))
	})
	if !there {
		return Response{}, problem.NotFound("repository")
	}
	return single(repository), nil
}
