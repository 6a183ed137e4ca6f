// Package decision is what a person decides in the console: the fields of a form, what the REST API is asked for, and
// who was faster.
package decision

import (
	"cmp"
	"encoding/hex"
	"hash/fnv"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/apiserver/console/page"
)

// Decision is what a person has decided about a finding or an issue, as the REST API shows it.
type Decision struct {
	UserStatus string     `json:"user_status"`
	Reason     *string    `json:"reason"`
	ExpiresAt  *time.Time `json:"expires_at"`
	Comments   string     `json:"comments"`
}

// Standing is a decision and who made it.
type Standing struct {
	Decision
	DecidedBy string `json:"decided_by"`
}

// Seen names a decision and who made it, so that a later one is told from it. What scans change is no part of it.
func (d Standing) Seen() string {
	if d == undecided {
		return undecidedSeen
	}
	return d.digest()
}

// Most findings of a list are undecided.
var (
	undecided     = Standing{Decision: Decision{UserStatus: Open}}
	undecidedSeen = undecided.digest()
)

func (d Standing) digest() string {
	end := ""
	if d.ExpiresAt != nil {
		end = d.ExpiresAt.UTC().Format(time.RFC3339)
	}
	reason := ""
	if d.Reason != nil {
		reason = *d.Reason
	}
	var buffer [128]byte
	text := buffer[:0]
	for _, part := range [...]string{d.UserStatus, reason, end, d.Comments, d.DecidedBy} {
		text = append(strconv.AppendQuote(text, part), ' ')
	}
	sum := fnv.New64a()
	_, _ = sum.Write(text) // a hash takes all
	return hex.EncodeToString(sum.Sum(nil))
}

// Change is what the REST API is asked for: what is not given stays, but that another status comes without the reason
// and the end of the one before.
type Change struct {
	UserStatus *string `json:"user_status,omitempty"`
	Reason     *string `json:"reason,omitempty"`
	ExpiresAt  *string `json:"expires_at,omitempty"`
	Comments   *string `json:"comments,omitempty"`
}

// none takes a reason or an end away.
const none = "none"

// InForce is the decision without the reason and the end of one that has ended.
func (d Decision) InForce() Decision {
	if d.UserStatus == Open {
		d.Reason, d.ExpiresAt = nil, nil
	}
	return d
}

// Offered is what a form begins with: the decision in force, and no choice where nobody has decided.
func (d Decision) Offered() Decision {
	if d = d.InForce(); d.UserStatus == Open {
		d.UserStatus = ""
	}
	return d
}

// Open is the status where nobody's decision is in force. It has no reason and no end.
const Open = "open"

// ChangeTo returns what leads to a decision that is in force, whatever was decided before.
func ChangeTo(d Decision) Change {
	d = d.InForce()
	c := Change{UserStatus: &d.UserStatus, Comments: &d.Comments}
	if d.UserStatus == Open {
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

// exactly is the field of a form that gives a decision back to the letter.
const exactly = "exactly"

// ChangeOf reads a form that a page filled with the decision before. A field that is given empty takes away what was
// there; one that the form does not have changes nothing.
func ChangeOf(form url.Values, before Decision) (c Change) {
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
	case *c.ExpiresAt == before.Until(): // a page shows the day alone
		c.ExpiresAt = ChangeTo(before).ExpiresAt
	default:
		*c.ExpiresAt = page.EndOf(*c.ExpiresAt)
	}
	return c
}

// Typed is what a form holds, as another form can be filled with it.
func Typed(form url.Values) Decision {
	d := Decision{UserStatus: form.Get("user_status"), Comments: form.Get("comments")}
	if reason := form.Get("reason"); reason != "" {
		d.Reason = &reason
	}
	if end, err := time.Parse(time.DateOnly, form.Get("until")); err == nil {
		d.ExpiresAt = &end
	}
	return d
}

// commentOf is the comment of a form that was filled with the one before. Browsers send the ends of lines in one way,
// whatever they were.
func commentOf(text, before string) string {
	lines := func(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }
	if lines(text) == lines(before) {
		return before
	}
	return lines(text)
}
