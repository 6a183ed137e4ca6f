package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
)

func getReviewIssue(backend Backend) Operation {
	return Operation{
		ID: "getReviewIssue", Scope: v1alpha1.ScopeReviewsRead,
		Handle: func(_ context.Context, request Request) (Response, error) {
			issue, there := backend.Model.ReviewIssue(request.Organization, request.Path.Get("id"))
			if !there {
				return Response{}, problem.NotFound("review issue")
			}
			return single(issue), nil
		},
	}
}
