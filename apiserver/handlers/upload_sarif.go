package handlers

import (
	"context"
	"net/http"
	"net/url"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/apiserver/uploads"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
)

// belowV3 is the path of GitHub Enterprise Server's API.
const belowV3 = "/api/v3"

// UploadSarif is an operation of the contract.
func (b *Backend) UploadSarif(ctx context.Context, request Request) (Response, error) {
	return b.uploadSarif(ctx, request, "")
}

// UploadSarifV3 is an operation of the contract.
func (b *Backend) UploadSarifV3(ctx context.Context, request Request) (Response, error) {
	return b.uploadSarif(ctx, request, belowV3)
}

func (b *Backend) uploadSarif(ctx context.Context, request Request, below string) (Response, error) {
	owner, repo := request.Path.Get("owner"), request.Path.Get("repo")
	named, err := b.repositoriesNamed(ctx, request)
	if err != nil {
		return Response{}, err
	}
	id, err := b.Uploads.Submit(ctx, uploads.Request{
		Identity: request.Identity, RequestID: request.ID, Repository: fullNameIn(request), Named: named,
		Imports: b.Model.Imports(request.Organization),
		Body:    request.Stream.Body, Gzip: true, Readmit: request.Stream.Readmit,
		Settings: func() (uploads.Settings, error) { return settings(request.Stream.Members()) },
	})
	if err != nil {
		return Response{}, err
	}
	shown, err := render.JSON(openapi.SarifReceipt{
		Id: id,
		Url: request.Origin + below + "/repos/" + url.PathEscape(owner) + "/" + url.PathEscape(repo) +
			"/code-scanning/sarifs/" + id,
	})
	return untagged(http.StatusAccepted, shown), err
}

// settings returns the members of the body that describe the file.
func settings(body openapi.Body, err error) (uploads.Settings, error) {
	if err != nil {
		return uploads.Settings{}, err
	}
	value := func(name string) string {
		text, _ := body.Lookup(name)
		return text
	}
	s := uploads.Settings{
		Choices:    importer.Choices{Commit: value("commit_sha"), NamelessTool: value("tool_name")},
		SourceRoot: value("checkout_uri"), Ref: value("ref"),
	}
	if at, err := v1alpha1.ParseTime(value("started_at")); err == nil { // checked against the contract before
		s.Choices.StartedAt = at.Time
	}
	return s, nil
}
