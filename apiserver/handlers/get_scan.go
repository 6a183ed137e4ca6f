package handlers

import "context"

// GetScan is an operation of the contract.
func (b *Backend) GetScan(ctx context.Context, request Request) (Response, error) {
	return findJSON(ctx, "scan", func() ([]byte, bool) {
		return b.Model.ScanJSON(request.Organization, request.Path.Get("id"))
	})
}
