package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// UpdateReviewIssue is an operation of the contract.
func (b *Backend) UpdateReviewIssue(ctx context.Context, request Request) (Response, error) {
	var update openapi.ReviewIssueUpdate
	if err := request.Body.Into(&update); err != nil {
		return Response{}, err
	}
	decision, err := givenDecision(update.UserStatus, update.Comments, update.Reason, update.ExpiresAt)
	if err != nil {
		return Response{}, err
	}
	issue, err := decide(ctx, request, b.reviewIssue(request.Path.Get("id")), decision)
	if err != nil {
		return Response{}, err
	}
	return tagged(issue, issue.In(render.Full)), nil
}
