package page

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/client"
)

// maxSamples bounds the findings that are read as examples for an operation or a policy.
const maxSamples = 10

// Samples reads some of the findings. A deleted one only has its id.
func (v *Visit) Samples(ctx context.Context, ids []string) ([]client.FindingFull, error) {
	return v.Findings(ctx, ids[:min(len(ids), maxSamples)])
}

// MaxSelected bounds how many findings a person may select, as an operation cannot name more.
const MaxSelected = 400

// Findings reads at most MaxSelected findings by their ids. A deleted one only has its id.
func (v *Visit) Findings(ctx context.Context, ids []string) ([]client.FindingFull, error) {
	if len(ids) > MaxSelected {
		const detail = "At most %d findings can be selected. Narrow the list with filters, and choose all that match."
		return nil, api.Failed(http.StatusBadRequest, fmt.Sprintf(detail, MaxSelected))
	}
	findings := make([]client.FindingFull, len(ids))
	for i, id := range ids {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		_, err := v.API.Get(ctx, Of("/v2/findings", id), nil, &findings[i])
		if api.Is(err, http.StatusNotFound) {
			findings[i].Id, err = id, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return findings, nil
}

// FieldOf returns the counts of a field; ok is false if it was not counted.
func FieldOf(counts client.FindingCounts, name string) (field client.FieldCounts, ok bool) {
	i := slices.IndexFunc(counts.Fields, func(f client.FieldCounts) bool { return f.Field == name })
	if i < 0 {
		return field, false
	}
	return counts.Fields[i], true
}

// CountsPath is where the REST API counts findings.
const CountsPath = "/v2/finding-counts"

// CountsOf returns how many of the findings that match the query have each value of a field.
func (v *Visit) CountsOf(ctx context.Context, query url.Values, field string) (client.FieldCounts, error) {
	query = maps.Clone(query)
	query.Set("field", field)
	var counts client.FindingCounts
	_, err := v.API.Get(ctx, CountsPath, query, &counts)
	known, _ := FieldOf(counts, field)
	return known, err
}

// CountOf returns how many findings have the value. It is unknown if only others, the most frequent, were counted.
func CountOf(field client.FieldCounts, value string) (count int32, known bool) {
	i := slices.IndexFunc(field.Values, func(c client.ValueCount) bool { return c.Value == value })
	if i < 0 {
		return 0, int(field.Distinct) == len(field.Values)
	}
	return field.Values[i].Count, true
}
