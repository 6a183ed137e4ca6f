package handlers

import (
	"context"
	"net/http"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// GetTriagePolicy is an operation of the contract.
func (b *Backend) GetTriagePolicy(ctx context.Context, request Request) (Response, error) {
	policy, err := b.Cluster.Policy(ctx, request.Namespace, request.Path.Get("id"))
	if err != nil {
		return Response{}, err
	}
	return policyResponse(http.StatusOK, policy)
}

func policyResponse(status int, policy *v1alpha1.TriagePolicy) (Response, error) {
	shown, err := render.TriagePolicyJSON(policy)
	return located(status, policiesPath+policy.Name, shown), err
}
