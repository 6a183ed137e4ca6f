package decision

import (
	"context"
	"net/http"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
)

// tries bounds how often a decision is sent again because a scan changed the finding in the meantime.
const tries = 5

// Store stores the decision of a form and returns the previous one. It reads the finding or issue at the address shown,
// and sends the change to the address changed. If another person has decided since the page was shown, it stores
// nothing and returns overtaken.
func Store(ctx context.Context, v *page.Visit, shown, changed string) (before Standing, overtaken bool, err error) {
	for try := 1; ; try++ {
		before = Standing{}
		tag, err := v.API.Get(ctx, shown, nil, &before)
		if err != nil {
			return before, false, err
		}
		if given := v.Form.Get("seen"); given != "" && given != before.Seen() {
			return before, true, nil
		}
		var answer struct{}
		err = v.API.Send(ctx, http.MethodPatch, changed, tag, ChangeOf(v.Form, before.Decision), &answer)
		if !api.Is(err, http.StatusPreconditionFailed) || try == tries {
			return before, false, err
		}
	}
}

// Conflict returns the message that explains why a decision was not stored.
func (d Standing) Conflict(what string) string {
	const unchanged = " Nothing was changed: look at it, then decide again."
	switch {
	case d.UserStatus == Open && d.ExpiresAt != nil:
		return "The decision has ended meanwhile." + unchanged
	case d.DecidedBy == "":
		return "The " + what + " has changed meanwhile." + unchanged
	}
	return d.DecidedBy + " was faster: the " + what + " is " + Words[d.UserStatus] + " now." + unchanged
}
