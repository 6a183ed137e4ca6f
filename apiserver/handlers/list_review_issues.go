package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// ListReviewIssues is an operation of the contract.
func (b *Backend) ListReviewIssues(ctx context.Context, request Request) (Response, error) {
	return b.listReviewIssues(ctx, "listReviewIssues", request, render.Documented)
}

// ListReviewIssuesFull is an operation of the contract.
func (b *Backend) ListReviewIssuesFull(ctx context.Context, request Request) (Response, error) {
	return b.listReviewIssues(ctx, "listReviewIssuesFull", request, render.Full)
}

func (b *Backend) listReviewIssues(ctx context.Context, id string, request Request,
	shape render.Shape) (Response, error) {
	review := request.Path.Get("id")
	list := newList(id, request).of(review)
	read := func(page index.Request) (index.Page[content.Part], error) {
		return b.Model.ListReviewIssues(request.Organization, readmodel.IssueQuery{
			Request: page, Review: review,
			Status: optional(request.Query, "status"), Severity: optional(request.Query, "severity"),
			UserStatus: optional(request.Query, "user_status"), Shape: shape,
		})
	}
	return listModel(ctx, b, list, "review issues", read)
}
