package reviews

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
)

// decide stores a decision about an issue, unless somebody else has decided, or a scan has changed the facts,
// since the issue was shown.
func decide(ctx context.Context, v *page.Visit) (page.Response, error) {
	if _, err := viewOf(v); err != nil {
		return page.Response{}, err
	}
	issue := v.Path("issue")
	read := func(ctx context.Context) (decision.Standing, string, error) {
		var i client.ReviewIssueFull
		tag, err := v.API.Get(ctx, page.Of("/v2/full-issues", issue), nil, &i)
		return now(i), tag, err
	}
	before, overtaken, err := decision.Store(ctx, v, page.Of("/v2/issues", issue), read)
	failure, refused := api.Refused(err)
	s := shown{Conflicted: issue, Sent: v.Form}
	switch {
	case refused:
		s.Conflict = decision.Refusal(failure)
		return showWith(ctx, v, s, failure.Status)
	case err != nil:
		return page.Response{}, err
	case overtaken:
		s.Conflict = before.Conflict("issue", v.Form.Get("seen"))
		return showWith(ctx, v, s, http.StatusConflict)
	}
	return showIssue(ctx, v)
}

// showIssue redirects to the issue on the page of its review. After a refused decision the browser is at the issue's
// address; a reload or a login requests it with GET.
func showIssue(_ context.Context, v *page.Visit) (page.Response, error) {
	view, err := viewOf(v)
	return page.SeeOther(page.Address(v.Resource(listPath), view) + "#" + Anchor(v.Path("issue"))), err
}

// Anchor returns where an issue is on the page of its review.
func Anchor(issue string) string { return "issue-" + url.PathEscape(issue) }

// conflictElsewhere reports whether the page does not have the issue about which a decision was not stored: it is on
// another page of the lists, or has another severity by now.
func (s shown) conflictElsewhere() bool {
	is := func(i client.ReviewIssueFull) bool { return i.Id == s.Conflicted }
	return s.Conflict != "" && !slices.ContainsFunc(s.open.Items, is) && !slices.ContainsFunc(s.resolved.Items, is)
}

// filled returns the initial values of an issue's form: the decision in force, or what the user typed if it was not
// stored.
func (s shown) filled(i client.ReviewIssueFull) decision.Decision {
	if s.Conflicted == i.Id {
		return decision.Typed(s.Sent, now(i).Decision)
	}
	return now(i).Initial()
}

// now returns the current decision about the issue, and the facts.
func now(i client.ReviewIssueFull) decision.Standing {
	return decision.Standing{Decision: decision.Decision{
		UserStatus: string(i.UserStatus), Reason: (*string)(i.Reason), ExpiresAt: i.ExpiresAt, Comments: i.Comments,
	}, DecidedBy: i.DecidedBy, Facts: decision.Facts{
		Severity: string(i.Severity), ToolSeverity: i.ToolSeverity, Score: ptr.Deref(i.Score, 0), Version: i.PackageVersion,
		Title: i.Title, Description: i.Description, Path: i.FilePath, Line: int(i.LineNumber),
	}}
}
