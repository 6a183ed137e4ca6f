package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/render"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// CountFindings is an operation of the contract.
func (b *Backend) CountFindings(ctx context.Context, request Request) (Response, error) {
	filter, err := strictFilter(request.Query)
	if err != nil {
		return Response{}, err
	}
	counts, err := tracing.Do(ctx, "read model: count findings", func() (readmodel.FindingCounts, error) {
		return b.Model.CountFindings(ctx, request.Organization, readmodel.CountQuery{
			Filter: filter, Field: request.Query.Get("field"), Values: request.Query.Int("values"),
		})
	})
	if err != nil {
		return Response{}, Unavailable(err)
	}
	shown, err := render.JSON(findingCounts(&counts))
	return rendered(shown), err
}

func findingCounts(counts *readmodel.FindingCounts) *openapi.FindingCounts {
	out := &openapi.FindingCounts{Total: asInt32(counts.Total), Fields: make([]openapi.FieldCounts, len(counts.Fields))}
	for i := range counts.Fields {
		field := &counts.Fields[i]
		values := make([]openapi.ValueCount, len(field.Values))
		for j, v := range field.Values {
			values[j] = openapi.ValueCount{Value: v.Value, Count: asInt32(v.Count)}
		}
		out.Fields[i] = openapi.FieldCounts{Field: field.Name, Distinct: asInt32(field.Distinct), Values: values}
	}
	return out
}

func asInt32(n int) int32 { return int32(n) } //nolint:gosec // of findings, of which an organization has millions at most
