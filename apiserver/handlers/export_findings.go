package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/export"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel"
	"github.com/appsec-dev/findings-operator/apiserver/readmodel/index"
	"github.com/appsec-dev/findings-operator/apiserver/slots"
)

// NewExports returns the slots of exports. They are few because an export keeps a megabyte, or 50 bytes per finding, as
// long as its client reads. Fewer are produced at the same time.
func NewExports() *slots.Slots {
	const total, perOrganization = 16, 2
	return slots.New(total, perOrganization)
}

// exportRetryAfter is about how long an export of 100,000 findings takes.
const exportRetryAfter = 10 * time.Second

// errStopping ends an export when the service stops.
var errStopping = errors.New("the service is stopping")

// ExportFindings is an operation of the contract.
func (b *Backend) ExportFindings(ctx context.Context, request Request) (Response, error) {
	filter, err := strictFilter(request.Query)
	if err != nil {
		return Response{}, err
	}
	tools, err := b.Model.FindingTools(request.Organization)
	if err != nil {
		return Response{}, Unavailable(err)
	}
	free, err := b.Exports.Take(request.Organization)
	switch {
	case errors.Is(err, slots.ErrOrganization):
		return Response{}, problem.Busy("the organization has too many exports under way", exportRetryAfter)
	case err != nil:
		return Response{}, problem.Busy("too many exports are under way", exportRetryAfter)
	}
	query := readmodel.FindingQuery{
		Request: index.Request{Sort: index.Sort(request.Query.Get("sort")), Order: index.Order(request.Query.Get("order"))},
		Filter:  filter,
	}
	if request.Query.Get("format") == "sarif" {
		return Response{Streamed: &Streamed{
			MediaType: openapi.SARIFMediaType, FileName: "findings.sarif", Close: free,
			Write: func(w io.Writer) error {
				return export.SARIF(w, tools, func(tool string) export.Findings {
					return b.findingsOf(ctx, request.Organization, query, tool)
				})
			},
		}}, nil
	}
	return Response{Streamed: &Streamed{
		MediaType: "text/csv; charset=utf-8; header=present", FileName: "findings.csv", Close: free,
		Write: func(w io.Writer) error { return export.CSV(w, b.findings(ctx, request.Organization, query)) },
	}}, nil
}

// findingsOf returns the findings of a query that a tool reports.
func (b *Backend) findingsOf(ctx context.Context, organization string, q readmodel.FindingQuery,
	tool string) export.Findings {
	if asked := q.Filter.Tool; asked != nil && *asked != tool {
		return func(func(*openapi.FindingFull, error) bool) {}
	}
	q.Filter.Tool = &tool
	return b.findings(ctx, organization, q)
}

// findings yields the findings of a query in the full shape, until the client disconnects or the service stops.
func (b *Backend) findings(ctx context.Context, organization string, q readmodel.FindingQuery) export.Findings {
	return func(yield func(*openapi.FindingFull, error) bool) {
		var shown []byte
		for item, err := range b.Model.WalkFindings(organization, q) {
			if err == nil {
				err = b.ended(ctx)
			}
			finding := &openapi.FindingFull{}
			if err == nil {
				shown = item.Full().AppendTo(shown[:0])
				if err = json.Unmarshal(shown, finding); err != nil {
					err = fmt.Errorf("read the full shape of finding %s: %w", item.ID, err)
				}
			}
			if !yield(finding, err) || err != nil {
				return
			}
		}
	}
}

func (b *Backend) ended(ctx context.Context) error {
	select {
	case <-b.Stopping:
		return errStopping
	default:
		return context.Cause(ctx)
	}
}
