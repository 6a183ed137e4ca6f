// Package decision handles decisions made in the console: the fields of a form, the request to the REST API, and
// conflicts with decisions that others have made meanwhile.
package decision

import (
	"cmp"
	"net/url"
	"time"

	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
)

// Decision is a finding's or an issue's own decision (spec.triage), as the REST API returns it.
type Decision struct {
	UserStatus string     `json:"user_status"`
	Reason     *string    `json:"reason"`
	ExpiresAt  *time.Time `json:"expires_at"`
	Comments   string     `json:"comments"`
}

// Change is the request to the REST API. Omitted fields stay unchanged, except that a new status does not inherit the
// reason and the expiry of the old one.
type Change struct {
	UserStatus *string `json:"user_status,omitempty"`
	Reason     *string `json:"reason,omitempty"`
	ExpiresAt  *string `json:"expires_at,omitempty"`
	Comments   *string `json:"comments,omitempty"`
}

// none removes a reason or an expiry.
const none = "none"

// InForce returns the decision without the reason and the expiry if it has expired.
func (d Decision) InForce() Decision {
	if d.UserStatus == Open {
		d.Reason, d.ExpiresAt = nil, nil
	}
	return d
}

// Initial returns the initial values of a form: the decision in force, or no choice if there is none.
func (d Decision) Initial() Decision {
	if d = d.InForce(); d.UserStatus == Open {
		d.UserStatus = ""
	}
	return d
}

// Open is the status without a decision in force. It has no reason and no expiry.
const Open = "open"

// ChangeTo returns the change that restores a decision that is in force, whatever the current one is.
func ChangeTo(d Decision) Change {
	d = d.InForce()
	c := Change{UserStatus: &d.UserStatus, Comments: &d.Comments}
	if d.UserStatus == Open {
		return c
	}
	reason, end := ptr.Deref(d.Reason, none), none
	if d.ExpiresAt != nil {
		end = d.ExpiresAt.UTC().Format(time.RFC3339)
	}
	c.Reason, c.ExpiresAt = &reason, &end
	return c
}

// exactly is the form field that marks values to be stored exactly as sent.
const exactly = "exactly"

// changeOf reads a form that a page filled with the decision before. An empty field removes the old value; a missing
// field changes nothing.
func changeOf(form url.Values, before Decision) (c Change) {
	given := func(name, byDefault string) *string {
		if !form.Has(name) {
			return nil
		}
		value := cmp.Or(form.Get(name), byDefault)
		return &value
	}
	c.UserStatus, c.Comments = given("user_status", ""), given("comments", "")
	if c.Comments != nil && !form.Has(exactly) {
		*c.Comments = commentOf(*c.Comments, before.Comments)
	}
	if c.UserStatus != nil && *c.UserStatus == Open {
		return c
	}
	c.Reason, c.ExpiresAt = given("reason", none), given("until", none)
	switch before = before.InForce(); {
	case c.ExpiresAt == nil:
	case *c.ExpiresAt == before.Until(): // a page only shows the day
		c.ExpiresAt = ChangeTo(before).ExpiresAt
	default:
		*c.ExpiresAt = page.EndOf(*c.ExpiresAt)
	}
	return c
}

// filledPrefix precedes the names of fields in those that identify what a form was filled with.
const filledPrefix = "filled."

// field is a field of a form.
type field struct{ name, value string }

// formFields returns the fields of a form that is filled with the decision.
func (d Decision) formFields() []field {
	d = d.Initial()
	return []field{
		{"user_status", d.UserStatus}, {"reason", ptr.Deref(d.Reason, "")}, {"until", d.Until()}, {"comments", d.Comments},
	}
}

// identify returns a short form of a field's value, whatever its line ends.
func identify(value string) string { return digest(page.Lines(value)) }

// Typed returns the values to fill another form with after one was refused: those that the user changed and, for the
// others, those of the current decision, so that no value is restored that somebody else has replaced. If the user
// chose another status, the reason and the end are as sent, even if they are empty. If the user chose none and there is
// no longer a decision, the status is open: a form without a status would show the first choice, which mutes.
func Typed(form url.Values, now Decision) Decision {
	typed := func(name string) bool { return form.Get(filledPrefix+name) != identify(form.Get(name)) }
	d, chosen := now.Initial(), typed("user_status")
	if form.Get("user_status") == Open && form.Get(filledPrefix+"user_status") == identify("") {
		chosen = false // nobody withdraws what was not decided
	}
	switch {
	case chosen:
		d.UserStatus = form.Get("user_status")
	case d.UserStatus == "":
		d.UserStatus = Open
	}
	if typed("comments") {
		d.Comments = form.Get("comments")
	}
	if chosen || typed("reason") {
		d.Reason = nil
		if reason := form.Get("reason"); reason != "" {
			d.Reason = &reason
		}
	}
	if until := form.Get("until"); (chosen || typed("until")) && until != d.Until() {
		d.ExpiresAt = nil
		if end, err := time.Parse(time.RFC3339, page.EndOf(until)); err == nil {
			d.ExpiresAt = &end
		}
	}
	return d
}

// commentOf returns the comment of a form that was filled with the one before, unless they differ only in line ends.
func commentOf(text, before string) string {
	if page.Lines(text) == page.Lines(before) {
		return before
	}
	return page.Lines(text)
}
