package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// GetReviewIssue is an operation of the contract.
func (b *Backend) GetReviewIssue(ctx context.Context, request Request) (Response, error) {
	return b.getReviewIssue(ctx, request, render.Documented)
}

// GetReviewIssueFull is an operation of the contract.
func (b *Backend) GetReviewIssueFull(ctx context.Context, request Request) (Response, error) {
	return b.getReviewIssue(ctx, request, render.Full)
}

func (b *Backend) getReviewIssue(ctx context.Context, request Request, shape render.Shape) (Response, error) {
	issue, there := tracing.Do(ctx, "read model: review issue", func() (*readmodel.Issue, bool) {
		return b.Model.ReviewIssue(request.Organization, request.Path.Get("id"))
	})
	if !there {
		return Response{}, problem.NotFound("review issue")
	}
	return tagged(issue, issue.In(shape)), nil
}
