package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// GetReview is an operation of the contract.
func (b *Backend) GetReview(ctx context.Context, request Request) (Response, error) {
	review, there := tracing.Do(ctx, "read model: review", func() (*readmodel.Review, bool) {
		return b.Model.Review(request.Organization, request.Path.Get("id"))
	})
	if !there {
		return Response{}, problem.NotFound("review")
	}
	return tagged(review, review.In(render.Full)), nil
}
