package handlers

import (
	"context"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/content"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// ListReviews is an operation of the contract.
func (b *Backend) ListReviews(ctx context.Context, request Request) (Response, error) {
	return b.listReviews(ctx, "listReviews", request, render.Documented)
}

// ListReviewsFull is an operation of the contract.
func (b *Backend) ListReviewsFull(ctx context.Context, request Request) (Response, error) {
	return b.listReviews(ctx, "listReviewsFull", request, render.Full)
}

func (b *Backend) listReviews(ctx context.Context, id string, request Request, shape render.Shape) (Response, error) {
	filter, err := reviewFilter(request.Query)
	if err != nil {
		return Response{}, err
	}
	list := newList(id, request)
	read := func(page index.Request) (index.Page[content.Part], error) {
		return b.Model.ListReviews(request.Organization, readmodel.ReviewQuery{
			Request: page, Filter: filter, Shape: shape,
		})
	}
	return listModel(ctx, b, list, "reviews", read)
}

func reviewFilter(query openapi.Parameters) (readmodel.ReviewFilter, error) {
	filter := readmodel.ReviewFilter{
		StartTime: query.Time("start_time"),
		EndTime:   query.Time("end_time"),
		Status:    optional(query, "status"),
		Custom:    readmodel.Custom(query.Get("custom")),
	}
	if reversed(filter.StartTime, filter.EndTime) {
		return readmodel.ReviewFilter{}, problem.InvalidQuery("end_time must not be before start_time").In("end_time")
	}
	return filter, nil
}

func reversed(start, end *time.Time) bool { return start != nil && end != nil && end.Before(*start) }
