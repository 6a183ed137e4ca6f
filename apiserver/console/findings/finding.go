package findings

import (
	"context"
	"net/http"
	"net/url"

	"golang.org/x/sync/errgroup"

	"github.com/appsec-dev/findings-operator/apiserver/console/decision"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/client"
)

// shown is what the page of a finding shows.
type shown struct {
	client.FindingFull
	History    []client.Transition
	Deliveries []client.WebhookDelivery
	Similar    similar
	Token      string
	CanDecide  bool
	// NeedsReason says that the organization requires one to mute.
	NeedsReason bool
	// Conflict says who was faster; empty for nobody.
	Conflict string
	// Typed is what a form held that was not stored.
	Typed *decision.Decision
}

// now is the decision that the page shows.
func (s shown) now() decision.Standing {
	return decision.Standing{Decision: decision.Decision{
		UserStatus: string(s.UserStatus), Reason: (*string)(s.Reason), ExpiresAt: s.ExpiresAt, Comments: s.Comments,
	}, DecidedBy: s.DecidedBy}
}

// filled is the decision that the form begins with: the one in force, or what was typed when somebody was faster.
func (s shown) filled() decision.Decision {
	if s.Typed != nil {
		return *s.Typed
	}
	return s.now().Offered()
}

// because gives the reason of a decision, if it has one.
func because(reason *string) string {
	if reason == nil {
		return ""
	}
	return ": " + decision.ReasonWord(*reason)
}

// show is the page of a finding, or the panel beside the list.
func show(ctx context.Context, v *page.Visit) (page.Response, error) {
	return showWith(ctx, v, http.StatusOK)
}

func showWith(ctx context.Context, v *page.Visit, status int) (page.Response, error) {
	s := shown{Token: v.Token, CanDecide: v.May("findings:triage"), NeedsReason: v.Who.RequiresReason}
	at := address(v.Path("id"))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if _, err := v.API.Get(ctx, at, nil, &s.FindingFull); err != nil {
			return err
		}
		var err error
		s.Similar, err = readSimilar(ctx, v, s.FindingFull)
		return err
	})
	group.Go(func() (err error) {
		s.Deliveries, err = readDeliveries(ctx, v, v.Path("id"))
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
	if status == http.StatusConflict {
		s.Conflict = s.now().Conflict("finding")
		typed := decision.Typed(v.Form)
		s.Typed = &typed
	}
	return page.Response{Status: status, Title: s.Details.Title, Body: findingPage(s), Styles: styles}, nil
}

// address is where the REST API has a finding.
func address(id string) string { return "/v2/findings/" + url.PathEscape(id) }
