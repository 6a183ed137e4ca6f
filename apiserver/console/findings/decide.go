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
	"strings"
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

// inForce is the decision without the reason and the end of one that has ended.
func (d decision) inForce() decision {
	if d.UserStatus == open {
		d.Reason, d.ExpiresAt = nil, nil
	}
	return d
}

// open is the status of a finding about which nobody's decision is in force. It has no reason and no end.
const open = "open"

// changeTo returns what leads to a decision that is in force, whatever was decided before.
func changeTo(d decision) change {
	d = d.inForce()
	c := change{UserStatus: &d.UserStatus, Comments: &d.Comments}
	if d.UserStatus == open {
		return c
	}
	reason, end := none, none
	if d.Reason != nil {
		reason = *d.Reason
	}
	if d.ExpiresAt != nil {
		end = d.ExpiresAt.UTC().Format(time.RFC3339)
	}
	c.Reason, c.ExpiresAt = &reason, &end
	return c
}

// changeOf reads a form that a page filled with the decision before. A field that is given empty takes away what was
// there; one that the form does not have changes nothing.
func changeOf(form url.Values, before decision) (c change) {
	given := func(name, byDefault string) *string {
		if !form.Has(name) {
			return nil
		}
		value := cmp.Or(form.Get(name), byDefault)
		return &value
	}
	c.UserStatus, c.Comments = given("user_status", ""), given("comments", "")
	if c.Comments != nil {
		// Browsers send the ends of lines so, whatever they were.
		*c.Comments = strings.ReplaceAll(*c.Comments, "\r\n", "\n")
	}
	if c.UserStatus != nil && *c.UserStatus == open {
		return c
	}
	c.Reason, c.ExpiresAt = given("reason", none), given("until", none)
	switch before = before.inForce(); {
	case c.ExpiresAt == nil:
	case *c.ExpiresAt == before.until(): // a page shows the day alone
		c.ExpiresAt = changeTo(before).ExpiresAt
	default:
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

// tries bounds how often a decision is made again because a scan has changed the finding meanwhile.
const tries = 5

// decide stores a decision, unless somebody has decided since the person saw the finding.
func decide(ctx context.Context, v *page.Visit) (page.Response, error) {
	at := address(v.Path("id"))
	for try := 1; ; try++ {
		var before row
		tag, err := v.API.Get(ctx, at, nil, &before)
		if err != nil {
			return page.Response{}, err
		}
		if given := v.Form.Get("seen"); given != "" && given != seen(before.decision, before.DecidedBy) {
			return overtaken(ctx, v, before)
		}
		var answer struct{}
		err = v.API.Send(ctx, http.MethodPatch, at, tag, changeOf(v.Form, before.decision), &answer)
		var failure *api.Failure
		switch {
		case errors.As(err, &failure) && failure.Status == http.StatusPreconditionFailed && try < tries:
		case err != nil:
			return page.Response{}, err
		case v.Scripted:
			return tell(ctx, v, at, before.decision)
		default:
			return page.SeeOther(listPath + "/" + url.PathEscape(v.Path("id"))), nil
		}
	}
}

// tell answers a module with what was decided.
func tell(ctx context.Context, v *page.Visit, at string, before decision) (page.Response, error) {
	var after row
	if _, err := v.API.Get(ctx, at, nil, &after); err != nil {
		return page.Response{}, err
	}
	shown, err := page.Text(ctx, item(after, true))
	return page.Response{JSON: decided{changeTo(before), seen(after.decision, after.DecidedBy), shown}}, err
}

// overtaken shows what somebody else has decided; nothing was changed.
func overtaken(ctx context.Context, v *page.Visit, now row) (page.Response, error) {
	said := conflict(now)
	if !v.Scripted {
		response, err := showWith(ctx, v, said)
		response.Status = http.StatusConflict
		return response, err
	}
	shown, err := page.Text(ctx, item(now, true))
	return page.Response{Status: http.StatusConflict, JSON: struct {
		Detail string `json:"detail"`
		Row    string `json:"row"`
	}{said, shown}}, err
}

// conflict says why a decision was not stored.
func conflict(now row) string {
	const unchanged = " Nothing was changed: look at it, then decide again."
	switch {
	case now.UserStatus == open && now.ExpiresAt != nil:
		return "The decision has ended meanwhile." + unchanged
	case now.DecidedBy == "":
		return "The finding has changed meanwhile." + unchanged
	}
	return fmt.Sprintf("%s was faster: the finding is %s now.", now.DecidedBy, now.standing()) + unchanged
}
