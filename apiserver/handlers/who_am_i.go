package handlers

import (
	"context"
	"net/http"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// WhoAmI is an operation of the contract.
func (b *Backend) WhoAmI(_ context.Context, request Request) (Response, error) {
	who := openapi.WhoAmI{
		OrganizationId: request.Organization, Key: request.KeyName, ExpiresAt: request.ExpiresAt,
		RequestsPerMinute: request.RequestsPerMinute, RequiresReason: request.RequiresReason,
	}
	for _, scope := range request.Allowed() {
		who.Scopes = append(who.Scopes, string(scope))
	}
	shown, err := render.JSON(&who)
	return untagged(http.StatusOK, shown), err
}
