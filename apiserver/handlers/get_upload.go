package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// GetUpload is an operation of the contract.
func (b *Backend) GetUpload(ctx context.Context, request Request) (Response, error) {
	upload, err := b.upload(ctx, request, request.Path.Get("id"))
	if err != nil {
		return Response{}, err
	}
	shown, err := render.UploadJSON(*upload)
	return rendered(shown), err
}

// upload returns an upload of the organization. If the model does not hold all of it, it is read from the API
// server: another replica may have acknowledged it a moment ago.
func (b *Backend) upload(ctx context.Context, request Request, id string) (*openapi.Upload, error) {
	scans, _ := tracing.Do(ctx, "read model: upload", func() ([]*v1alpha1.Scan, bool) {
		return b.Model.Upload(request.Organization, id), true
	})
	if complete(scans) {
		return new(render.Upload(scans)), nil
	}
	return b.Uploads.Get(ctx, request.Namespace, id)
}

// complete reports whether the model holds every scan of an upload.
func complete(scans []*v1alpha1.Scan) bool {
	return len(scans) > 0 && scans[0].Spec.Upload != nil && len(scans) == int(scans[0].Spec.Upload.Scans)
}
