// Package decision handles decisions made in the console: the fields of a form, the request to the REST API, and
// conflicts with decisions that others have made meanwhile.
package decision

import (
	"cmp"
	"encoding/hex"
	"hash/fnv"
	"net/url"
	"strconv"
	"strings"
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

// Standing is a decision, who made it, and the facts that a new one would be based on.
type Standing struct {
	Decision
	DecidedBy string
	Facts
}

// Facts are what a scan may change and a decision is based on, as far as the REST API shows it. Those that a finding or
// an issue does not have are empty.
type Facts struct {
	Severity, ToolSeverity string
	Score                  float32
	// Version is that of the package. Code counts only without it.
	Version, Code string
	// Title, Description, Path and Line count only without version and code: nothing else tells one problem from another.
	Title, Description, Path string
	Line                     int
	// Stale is how they differ from those of the last decision, or why they are in doubt; empty if neither applies.
	Stale string
}

// critical is the worst of the severities that a decision can be based on. The REST API has no such level.
const (
	critical      = "critical"
	criticalScore = 9
)

// digest identifies the facts, by the rules for the basis of a decision: white space in code does not count. Without
// version and code it also covers the problem and its location, which are not part of a stored basis.
func (f Facts) digest() string {
	if f.Severity == "high" && (f.Score >= criticalScore || strings.EqualFold(f.ToolSeverity, critical)) {
		f.Severity = critical
	}
	switch {
	case f.Version != "":
		return digest(f.Severity, f.Version)
	case f.Code != "":
		return digest(f.Severity, "", hash([]byte(strings.Join(strings.Fields(f.Code), ""))))
	}
	return digest(f.Severity, "", f.Title, f.Description, f.Path, strconv.Itoa(f.Line))
}

// seen identifies the facts, and what makes the decision stale.
func (f Facts) seen() string {
	if f.Stale == "" {
		return f.digest()
	}
	return f.digest() + digest(f.Stale)
}

// areIn reports whether the user who has seen a state has seen these facts. What made the decision stale then does not
// matter if nothing does now.
func (f Facts) areIn(seen string) bool {
	seen = seen[min(len(seen), len(undecidedDigest)):] // without the decision
	return seen == f.seen() || f.Stale == "" && strings.HasPrefix(seen, f.digest())
}

// Seen identifies what a user has seen: a decision, its author, the facts, and what makes the decision stale. Other
// changes by scans do not affect it.
func (d Standing) Seen() string { return d.decided() + d.Facts.seen() }

// isIn reports whether the user has seen the decision and the facts.
func (d Standing) isIn(seen string) bool {
	return strings.HasPrefix(seen, d.decided()) && d.Facts.areIn(seen)
}

// decided identifies the decision and who made it. It is the first part of Seen.
func (d Standing) decided() string {
	d.Facts = Facts{}
	if d == undecided {
		return undecidedDigest
	}
	return d.digest()
}

// Precomputed, because most findings of a list are undecided.
var (
	undecided       = Standing{Decision: Decision{UserStatus: Open}}
	undecidedDigest = undecided.digest()
)

func (d Standing) digest() string {
	end := ""
	if d.ExpiresAt != nil {
		end = d.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return digest(d.UserStatus, ptr.Deref(d.Reason, ""), end, d.Comments, d.DecidedBy)
}

func digest(parts ...string) string {
	var buffer [128]byte
	text := buffer[:0]
	for _, part := range parts {
		text = append(strconv.AppendQuote(text, part), ' ')
	}
	return hash(text)
}

func hash(text []byte) string {
	sum := fnv.New64a()
	_, _ = sum.Write(text) // a hash never fails
	return hex.EncodeToString(sum.Sum(nil))
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
	if chosen || typed("until") {
		d.ExpiresAt = nil
		if end, err := time.Parse(time.RFC3339, page.EndOf(form.Get("until"))); err == nil {
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
