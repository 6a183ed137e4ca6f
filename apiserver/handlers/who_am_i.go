package handlers

import (
	"context"
	"net/http"

	"github.com/appsec-dev/findings-operator/apiserver/openapi"
	"github.com/appsec-dev/findings-operator/apiserver/render"
)

// WhoAmI is an operation of the contract.
func (b *Backend) WhoAmI(_ context.Context, request Request) (Response, error) {
	key := request.Key
	who := openapi.WhoAmI{
		OrganizationId: key.Organization, Key: key.KeyName, ExpiresAt: key.ExpiresAt,
		RequestsPerMinute: key.RequestsPerMinute, RequiresReason: key.RequiresReason,
	}
	for _, scope := range key.Allowed() {
		who.Scopes = append(who.Scopes, string(scope))
	}
	shown, err := render.JSON(&who)
	return untagged(http.StatusOK, shown), err
}
