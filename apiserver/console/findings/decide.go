package findings

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
)

// decision is what a person has decided about a finding, as the REST API shows it.
type decision struct {
	UserStatus string     `json:"user_status"`
	Reason     *string    `json:"reason"`
	ExpiresAt  *time.Time `json:"expires_at"`
	Comments   string     `json:"comments"`
}

// seen names a decision and who made it, so that a later one is told from it. What scans change is no part of it.
func seen(d decision, by string) string {
	sum := fnv.New64a()
	end := ""
	if d.ExpiresAt != nil {
		end = d.ExpiresAt.UTC().Format(time.RFC3339)
	}
	reason := ""
	if d.Reason != nil {
		reason = *d.Reason
	}
	_, _ = fmt.Fprintf(sum, "%q %q %q %q %q", d.UserStatus, reason, end, d.Comments, by) // a hash takes all
	return hex.EncodeToString(sum.Sum(nil))
}

// change is what the REST API is asked for: what is not given stays, but that another status comes without the reason
// and the end of the one before.
type change struct {
	UserStatus *string `json:"user_status,omitempty"`
	Reason     *string `json:"reason,omitempty"`
	ExpiresAt  *string `json:"expires_at,omitempty"`
	Comments   *string `json:"comments,omitempty"`
}

// none takes a reason or an end away.
const none = "none"

// changeTo returns what leads to a decision, whatever was decided before.
func changeTo(d decision) change {
	reason, end := none, none
	if d.Reason != nil {
		reason = *d.Reason
	}
	if d.ExpiresAt != nil {
		end = d.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return change{&d.UserStatus, &reason, &end, &d.Comments}
}

// changeOf reads a form. A field that is given empty takes away what was there.
func changeOf(form url.Values) (c change) {
	given := func(name, byDefault string) *string {
		if !form.Has(name) {
			return nil
		}
		value := cmp.Or(form.Get(name), byDefault)
		return &value
	}
	c.UserStatus, c.Reason, c.Comments = given("user_status", ""), given("reason", none), given("comments", "")
	if c.ExpiresAt = given("until", none); c.ExpiresAt != nil {
		*c.ExpiresAt = page.EndOf(*c.ExpiresAt)
	}
	return c
}

// decided is what a module is told of a decision.
type decided struct {
	// Undo is what puts back what was before.
	Undo change `json:"undo"`
	// Seen names the decision now in force.
	Seen string `json:"seen"`
	// Row of the list as it now is.
	Row string `json:"row"`
}

// decide stores a decision, unless somebody has decided since the person saw the finding.
func decide(ctx context.Context, v *page.Visit) (page.Response, error) {
	at := address(v.Path("id"))
	var before row
	tag, err := v.API.Get(ctx, at, nil, &before)
	if err != nil {
		return page.Response{}, err
	}
	if given := v.Form.Get("seen"); given != "" && given != seen(before.decision, before.DecidedBy) {
		return overtaken(ctx, v, before)
	}
	var answer struct{}
	err = v.API.Send(ctx, http.MethodPatch, at, tag, changeOf(v.Form), &answer)
	var failure *api.Failure
	if errors.As(err, &failure) && failure.Status == http.StatusPreconditionFailed {
		if _, err := v.API.Get(ctx, at, nil, &before); err != nil {
			return page.Response{}, err
		}
		return overtaken(ctx, v, before)
	}
	if err != nil {
		return page.Response{}, err
	}
	if !v.Scripted {
		return page.SeeOther(listPath + "/" + url.PathEscape(v.Path("id"))), nil
	}
	var after row
	if _, err := v.API.Get(ctx, at, nil, &after); err != nil {
		return page.Response{}, err
	}
	shown, err := page.Text(ctx, item(after, true))
	return page.Response{JSON: decided{changeTo(before.decision), seen(after.decision, after.DecidedBy), shown}}, err
}

// overtaken shows what somebody else has decided; nothing was changed.
func overtaken(ctx context.Context, v *page.Visit, now row) (page.Response, error) {
	conflict := fmt.Sprintf("%s was faster: the finding is %s now. Nothing was changed.", now.DecidedBy, now.standing())
	if v.Scripted {
		return page.Response{}, api.Failed(http.StatusConflict, conflict)
	}
	response, err := showWith(ctx, v, conflict)
	response.Status = http.StatusConflict
	return response, err
}
