package handlers

import "context"

// GetRepository is an operation of the contract.
func (b *Backend) GetRepository(ctx context.Context, request Request) (Response, error) {
	return findJSON(ctx, "repository", func() ([]byte, bool) {
		return b.Model.Repository(request.Organization, request.Path.Get("id"))
	})
}
