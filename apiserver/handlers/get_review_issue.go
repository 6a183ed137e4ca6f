package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// GetReviewIssue is an operation of the contract.
func (b *Backend) GetReviewIssue(ctx context.Context, request Request) (Response, error) {
	return b.getReviewIssue(ctx, request, render.Documented)
}

// GetReviewIssueFull is an operation of the contract.
func (b *Backend) GetReviewIssueFull(ctx context.Context, request Request) (Response, error) {
	return b.getReviewIssue(ctx, request, render.Full)
}

// GetReviewIssueHistory is an operation of the contract.
func (b *Backend) GetReviewIssueHistory(ctx context.Context, request Request) (Response, error) {
	issue, err := b.issueByID(ctx, request)
	if err != nil {
		return Response{}, err
	}
	history, err := issue.History()
	return single(history), err
}

func (b *Backend) getReviewIssue(ctx context.Context, request Request, shape render.Shape) (Response, error) {
	issue, err := b.issueByID(ctx, request)
	if err != nil {
		return Response{}, err
	}
	return tagged(issue, issue.In(shape)), nil
}

func (b *Backend) issueByID(ctx context.Context, request Request) (*readmodel.Issue, error) {
	return find(ctx, "review issue", func() (*readmodel.Issue, bool) {
		return b.Model.ReviewIssue(request.Organization, request.Path.Get("id"))
	})
}
