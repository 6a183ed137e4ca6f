package handlers

import (
	"context"

	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// ListTriagePolicies is an operation of the contract. An organization has few policies, so that all are read each time
// and no replica is behind.
func (b *Backend) ListTriagePolicies(ctx context.Context, request Request) (Response, error) {
	list := newList("listTriagePolicies", request)
	return listStored(ctx, b, list, request, b.Cluster.Policies, render.TriagePolicyJSON)
}
