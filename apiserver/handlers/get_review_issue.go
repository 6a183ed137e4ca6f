package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

// GetReviewIssue is an operation of the contract.
func (b *Backend) GetReviewIssue(_ context.Context, request Request) (Response, error) {
	issue, there := b.Model.ReviewIssue(request.Organization, request.Path.Get("id"))
	if !there {
		return Response{}, problem.NotFound("review issue")
	}
	return single(issue), nil
}
