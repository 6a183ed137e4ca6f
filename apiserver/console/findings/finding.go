package findings

import (
	"context"
	"net/http"
	"net/url"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/reviews"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
	"github.com/appsec-dev/findings-operator/client"
)

// shown is the content of a finding's page.
type shown struct {
	client.FindingFull
	History    []client.Transition
	Deliveries client.WebhookDeliveryList
	// NoDeliveries reports that the service could not return the deliveries.
	NoDeliveries bool
	Similar      similar
	// IssuePage is the address of the review issue whose decision counts; "" if there is none.
	IssuePage string
	Token     string
	CanDecide bool
	// NeedsReason reports that the organization requires a reason to mute.
	NeedsReason bool
	// Conflict explains why the form was not stored; empty if none was sent.
	Conflict string
	// Sent is a form that was not stored; nil if none was sent.
	Sent  url.Values
	texts *ui.Texts
}

// now returns the decision that the page shows, and the facts.
func (s shown) now() decision.Standing {
	return decision.Standing{Decision: decision.Decision{
		UserStatus: string(s.UserStatus), Reason: (*string)(s.Reason), ExpiresAt: s.ExpiresAt, Comments: s.Comments,
	}, DecidedBy: s.DecidedBy, Facts: decision.Facts{
		Severity: string(s.Details.Severity), ToolSeverity: s.FindingFull.Facts.ToolSeverity,
		Score: ptr.Deref(s.FindingFull.Facts.Score, 0), Version: s.FindingFull.Facts.Package.Version,
		Code: s.Details.Code, Title: s.Details.Title, Description: s.Details.Description,
		Path: s.Details.Location.FilePath, Line: int(s.Details.Location.LineNumber), Stale: s.DecisionStale,
	}}
}

// filled returns the initial values of the form: the decision in force, or what the user typed if it was not stored.
func (s shown) filled() decision.Decision {
	if s.Sent != nil {
		return decision.Typed(s.Sent, s.now().Decision)
	}
	return s.now().Initial()
}

// because returns the reason of a decision, or "".
func because(reason *string) string {
	if reason == nil {
		return ""
	}
	return ": " + decision.ReasonWord(*reason)
}

// show serves the page of a finding, or the panel beside the list.
func show(ctx context.Context, v *page.Visit) (page.Response, error) {
	return showWith(ctx, v, shown{}, http.StatusOK)
}

// showRefused serves the page with the form as it was sent, and why it was not stored.
func showRefused(ctx context.Context, v *page.Visit, status int, why string) (page.Response, error) {
	return showWith(ctx, v, shown{Conflict: why, Sent: v.Form}, status)
}

func showWith(ctx context.Context, v *page.Visit, s shown, status int) (page.Response, error) {
	s.Token, s.CanDecide, s.NeedsReason = v.Token, v.May("findings:triage"), v.Who.RequiresReason
	s.texts = new(ui.Texts)
	at := v.Resource(apiPath)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if _, err := v.API.Get(ctx, at, nil, &s.FindingFull); err != nil {
			return err
		}
		var err error
		if s.IssuePage, err = readIssuePage(ctx, v, s.Verdict.ReviewIssue); err != nil {
			return err
		}
		s.Similar, err = readSimilar(ctx, v, s.FindingFull)
		return err
	})
	group.Go(func() (err error) {
		s.Deliveries, err = readDeliveries(ctx, v, v.Path("id"))
		if s.NoDeliveries = api.IsStale(err); s.NoDeliveries {
			return nil
		}
		return err
	})
	group.Go(func() error {
		var history client.FindingHistory
		_, err := v.API.Get(ctx, at+"/history", nil, &history)
		s.History = history.Transitions
		return err
	})
	if err := group.Wait(); err != nil {
		return page.Response{}, err
	}
	return page.Response{Status: status, Title: s.Details.Title, Body: findingPage(s), Styles: styles}, nil
}

// readIssuePage returns the address of a review issue on the page of its review; "" if the issue no longer exists, if
// the key may not read it, or if the service does not return it for the moment.
func readIssuePage(ctx context.Context, v *page.Visit, issue string) (string, error) {
	if issue == "" || !v.May("reviews:read") {
		return "", nil
	}
	var found client.ReviewIssueFull
	_, err := v.API.Get(ctx, page.Of("/v2/full-issues", issue), nil, &found)
	if api.Is(err, http.StatusNotFound) || api.IsStale(err) {
		return "", nil
	}
	return page.Of("/console/reviews", found.ReviewId) + "#" + reviews.Anchor(issue), err
}
