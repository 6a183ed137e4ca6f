// Package keys holds the page of the organization's API keys.
package keys

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

const (
	listPath = "/console/keys"
	apiPath  = "/v2/api-keys"
)

// Routes returns the pages.
func Routes() []page.Route {
	return []page.Route{{Method: http.MethodGet, Path: "keys", Serve: list}}
}

// list shows the organization's keys, the newest first.
func list(ctx context.Context, v *page.Visit) (page.Response, error) {
	var keys client.APIKeyList
	if err := v.ListUnfiltered(ctx, apiPath, &keys); err != nil {
		return page.Response{}, err
	}
	return page.Response{Title: "Keys", Body: listPage(keys, v.Who.Key, v.Who.OrganizationId, time.Now())}, nil
}

// soon is how long before its expiry a key should be rotated.
const soon = 14 * 24 * time.Hour

// standing is the status of a key in a word and a colour, and what to do about it.
type standing struct {
	word string
	tone ui.Tone
	next string
}

// withNewEnd is about keys with a spec.expiresAt. In others the flag would set one, which no later rotation moves.
func withNewEnd(k client.APIKey, organization string) string {
	return " If it has a spec.expiresAt (kubectl get apikey " + k.Id + " --namespace org-" + organization + " -o yaml), " +
		"give --expires-in: a new token alone does not move its end."
}

func standingOf(k client.APIKey, organization string, now time.Time) standing {
	ended := k.ExpiresAt != nil && !now.Before(*k.ExpiresAt)
	switch {
	case k.Disabled && ended:
		const next = "It has also ended. Delete it, or enable it and rotate it with the command above."
		return standing{"disabled", ui.Plain, next + withNewEnd(k, organization)}
	case k.Disabled && k.ExpiresAt == nil:
		return standing{"disabled", ui.Plain, strings.TrimSpace("It also has no token. " + notReady(k))}
	case k.Disabled:
		return standing{"disabled", ui.Plain, "It is refused until somebody enables it again."}
	case k.ExpiresAt == nil:
		return standing{"not issued", ui.Doubt, cmp.Or(notReady(k), "The controllers have yet to issue its token.")}
	case ended:
		return standing{"ended", ui.Bad, "It is refused. Delete it, or rotate it with the command above." + withNewEnd(k, organization)}
	case k.ExpiresAt.Sub(now) < soon:
		return standing{"ends soon", ui.Doubt, "Rotate it with the command above before it ends." + withNewEnd(k, organization)}
	}
	if why := notReady(k); why != "" {
		return standing{"not ready", ui.Doubt, why}
	}
	return standing{"valid", ui.Good, ""}
}

// notReady returns why a key is not ready; empty if it is ready or the reason is unknown.
func notReady(k client.APIKey) string {
	for _, c := range k.Conditions {
		if c.Type == "Ready" && c.Status != "True" {
			return c.Message
		}
	}
	return ""
}
