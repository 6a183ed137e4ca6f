package handlers

import (
	"context"
	"net/http"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/apiserver/uploads"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/scanimport/importer"
	"github.com/appsec-dev/findings-operator/scanimport/reviewimport"
)

// noAnalysis is how a query requests no analysis: an empty value counts as not given.
const noAnalysis = "-"

// UploadScan is an operation of the contract.
func (b *Backend) UploadScan(ctx context.Context, request Request) (Response, error) {
	repository, project := request.Path.Get("id"), request.Path.Get("project_id")
	imports := b.Model.Imports(request.Organization)
	if err := b.checkProject(ctx, request, repository, project, imports != nil); err != nil {
		return Response{}, err
	}
	upload, err := b.Uploads.Import(ctx, uploads.Request{
		Identity: request.Identity, RequestID: request.ID,
		Repository: repository, Project: project, Imports: imports,
		Choices:    choices(request.Query),
		SourceRoot: request.Query.Get("source_root"), Ref: request.Query.Get("ref"),
		PullRequest: pullRequest(request.Query),
		DryRun:      request.Query.Get("dry_run") == "true", Force: request.Query.Get("force") == "true",
		Body: request.Stream.Body, Gzip: request.Stream.Gzip, Readmit: request.Stream.Readmit,
	})
	if err != nil {
		return Response{}, err
	}
	return uploadResponse(upload)
}

// checkProject returns an error unless the repository has the project, or imports may create both. A project that the
// model lacks is read from the API server: a pipeline may upload as soon as it has created one.
func (b *Backend) checkProject(ctx context.Context, request Request, repository, project string, creates bool) error {
	if _, there := b.Model.Project(request.Organization, repository, project); there {
		return nil
	}
	if creates && kube.IsName(repository) && kube.IsName(project) {
		return nil
	}
	stored, err := b.Cluster.Project(ctx, request.Namespace, project)
	if err == nil && string(stored.Spec.RepositoryRef.Name) != repository {
		err = problem.NotFound("project")
	}
	return err
}

// uploadResponse marks only the body of a dry run as its own, which can be repeated. For want of a place, the answer
// to an import would be 429, which hides that it was made; and if it waited for a place, it would be held meanwhile.
func uploadResponse(upload *openapi.Upload) (Response, error) {
	status := http.StatusOK
	if upload.Status != nil && *upload.Status == openapi.ScanStatusRunning {
		status = http.StatusAccepted
	}
	shown, err := render.UploadJSON(*upload)
	response := located(status, "/v2/uploads/"+upload.Id, shown)
	response.Own = upload.DryRun
	return response, err
}

// pullRequest returns the parameters of the query that describe the scanned pull request.
func pullRequest(query openapi.Parameters) uploads.PullRequest {
	pr := uploads.PullRequest{
		Number: int32(query.Int("pull_request")), //nolint:gosec // bounded by the contract
		Title:  query.Get("pr_title"), Author: query.Get("pr_author"),
		Status: v1alpha1.PullRequestStatus(query.Get("pr_status")),
		Gate:   reviewimport.Gate(query.Get("fail_on")),
	}
	if at := query.Time("pr_opened_at"); at != nil {
		pr.OpenedAt = *at
	}
	return pr
}

// choices returns the parameters of the query that describe the file.
func choices(query openapi.Parameters) importer.Choices {
	c := importer.Choices{
		Tool: query.Get("tool"), Formerly: query.Get("formerly"), Commit: query.Get("commit"),
		Analysis: optional(query, "analysis"),
		Category: v1alpha1.FindingCategory(query.Get("category")),
	}
	if c.Analysis != nil && *c.Analysis == noAnalysis {
		*c.Analysis = ""
	}
	if at := query.Time("started_at"); at != nil {
		c.StartedAt = *at
	}
	return c
}
