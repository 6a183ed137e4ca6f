package handlers

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/apiserver/cluster"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// UpdateTriagePolicy is an operation of the contract.
func (b *Backend) UpdateTriagePolicy(ctx context.Context, request Request) (Response, error) {
	var given openapi.TriagePolicyChange
	if err := request.Body.Into(&given); err != nil {
		return Response{}, err
	}
	policy, err := b.Cluster.SetPolicyMode(ctx, request.Namespace, request.Path.Get("id"), cluster.ModeChange{
		Mode: policyModeOf(given.Mode), By: request.Author(), Generation: given.Generation,
		UID: types.UID(ptr.Deref(given.Uid, "")),
	})
	if err != nil {
		return Response{}, err
	}
	return policyResponse(http.StatusOK, policy)
}
