package reviews

import (
	"context"
	"net/http"
	"net/url"

	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
)

// decide stores a decision about an issue, unless somebody has decided since the person saw it.
func decide(ctx context.Context, v *page.Visit) (page.Response, error) {
	issue := v.Path("issue")
	before, overtaken, err := decision.Store(ctx, v, "/v2/full-issues/"+url.PathEscape(issue), "/v2/issues/"+url.PathEscape(issue))
	switch {
	case err != nil:
		return page.Response{}, err
	case overtaken:
		return showWith(ctx, v, shown{Conflict: before.Conflict("issue"), Conflicted: issue}, http.StatusConflict)
	}
	return page.SeeOther(page.Address(address(v.Path("id")), viewOf(v)) + "#" + url.PathEscape(issue)), nil
}

// now is what was decided about the issue.
func now(i client.ReviewIssueFull) decision.Standing {
	return decision.Standing{Decision: decision.Decision{
		UserStatus: string(i.UserStatus), Reason: (*string)(i.Reason), ExpiresAt: i.ExpiresAt, Comments: i.Comments,
	}, DecidedBy: i.DecidedBy}
}
