package handlers

import (
	"context"
	"net/http"
	"slices"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// GetSarif is an operation of the contract.
func (b *Backend) GetSarif(ctx context.Context, request Request) (Response, error) {
	ids, err := b.repositoriesNamed(ctx, request)
	if err != nil {
		return Response{}, err
	}
	upload, err := b.upload(ctx, request, request.Path.Get("sarif_id"))
	if err != nil {
		return Response{}, err
	}
	// A repository created by the upload may not have reached this replica's watch yet.
	imports := b.Model.Imports(request.Organization) != nil
	_, known := b.Model.Repository(request.Organization, upload.RepoId)
	if (known || !imports) && !slices.Contains(ids, upload.RepoId) {
		// The repository may also have got this full name a moment ago, or be one that cannot be read.
		named, unreadable, err := b.Cluster.RepositoriesNamed(ctx, request.Namespace, fullNameIn(request))
		if err == nil && !slices.Contains(slices.Concat(named, unreadable), upload.RepoId) {
			err = problem.NotFound("upload")
		}
		if err != nil {
			return Response{}, err
		}
	}
	shown, err := render.JSON(render.SarifStatus(upload, request.Origin+"/v2/uploads/"+upload.Id))
	return untagged(http.StatusOK, shown), err
}

// GetSarifV3 is an operation of the contract.
func (b *Backend) GetSarifV3(ctx context.Context, request Request) (Response, error) {
	return b.GetSarif(ctx, request)
}
