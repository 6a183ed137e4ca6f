package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// ListTriagePolicies is an operation of the contract. An organization has few policies, so each request reads
// all of them from the API server and no replica is behind.
func (b *Backend) ListTriagePolicies(ctx context.Context, request Request) (Response, error) {
	list := newList("listTriagePolicies", request)
	return listStored(ctx, b, list, request, b.Cluster.Policies, render.TriagePolicyJSON)
}
