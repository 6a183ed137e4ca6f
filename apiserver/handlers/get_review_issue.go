package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// GetReviewIssue is an operation of the contract.
func (b *Backend) GetReviewIssue(ctx context.Context, request Request) (Response, error) {
	issue, there := tracing.Do(ctx, "read model: review issue", func() ([]byte, bool) {
		return b.Model.ReviewIssue(request.Organization, request.Path.Get("id"))
	})
	if !there {
		return Response{}, problem.NotFound("review issue")
	}
	return single(issue), nil
}
