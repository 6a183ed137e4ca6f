package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// GetReview is an operation of the contract.
func (b *Backend) GetReview(ctx context.Context, request Request) (Response, error) {
	review, err := find(ctx, "review", func() (*readmodel.Review, bool) {
		return b.Model.Review(request.Organization, request.Path.Get("id"))
	})
	if err != nil {
		return Response{}, err
	}
	return tagged(review, review.In(render.Full)), nil
}
