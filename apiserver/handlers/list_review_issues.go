package handlers

import (
	"context"
	"errors"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
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
	list := newList(id, request, "status", "severity", "user_status").of(review)
	after, err := list.position(b.Cursors)
	if err != nil {
		return Response{}, err
	}
	page, err := tracing.Do(ctx, "read model: list review issues", func() (index.Page[content.Part], error) {
		return b.Model.ListReviewIssues(request.Organization, readmodel.IssueQuery{
			Review: review, Sort: list.sort(), Order: list.order(), Limit: list.limit, After: after,
			Status: optional(request.Query, "status"), Severity: optional(request.Query, "severity"),
			UserStatus: optional(request.Query, "user_status"), Shape: shape,
		})
	})
	switch {
	case errors.Is(err, readmodel.ErrNoReview):
		return Response{}, problem.NotFound("review")
	case err != nil:
		return Response{}, Unavailable(err)
	}
	return respond(b.Cursors, list, page, asIs)
}
