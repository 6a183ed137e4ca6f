package handlers

import "context"

// GetProject is an operation of the contract.
func (b *Backend) GetProject(ctx context.Context, request Request) (Response, error) {
	return findJSON(ctx, "project", func() ([]byte, bool) {
		return b.Model.Project(request.Organization, request.Path.Get("id"), request.Path.Get("project_id"))
	})
}
