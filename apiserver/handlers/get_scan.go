package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/problem"
	"github.com/appsec-dev/findings-operator/apiserver/tracing"
)

// GetScan is an operation of the contract.
func (b *Backend) GetScan(ctx context.Context, request Request) (Response, error) {
	scan, there := tracing.Do(ctx, "read model: scan", func() ([]byte, bool) {
		return b.Model.ScanJSON(request.Organization, request.Path.Get("id"))
	})
	if !there {
		return Response{}, problem.NotFound("scan")
	}
	return single(scan), nil
}
