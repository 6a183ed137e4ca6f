package decision

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/appsec-dev/findings-operator/apiserver/console/api"
	"github.com/appsec-dev/findings-operator/apiserver/console/page"
	"github.com/appsec-dev/findings-operator/apiserver/console/ui"
)

// tries bounds how often a decision is sent again because a scan changed the finding in the meantime.
const tries = 5

const (
	// patience is how long Store waits for the state that the form shows: the replica that answers may not have received
	// the user's previous decision yet.
	patience = time.Second
	// pause is how long it waits between two reads.
	pause = 100 * time.Millisecond
)

// Read returns the decision about a finding or an issue and the facts, as its page shows them, and its ETag.
type Read func(context.Context) (now Standing, tag string, err error)

// Store stores the decision of a form and returns the previous one. It sends the change to the address. It stores
// nothing and returns overtaken if somebody else has decided since the page was shown, if a scan has changed the facts,
// or if scans keep changing something. A form that is sent twice is not overtaken by itself.
func Store(ctx context.Context, v *page.Visit, address string, read Read) (before Standing, overtaken bool, err error) {
	for try := 1; ; try++ {
		var tag string
		before, tag, overtaken, err = readAsShown(ctx, v, read)
		if err != nil || overtaken {
			return before, overtaken, err
		}
		var answer struct{}
		err = v.API.Send(ctx, http.MethodPatch, address, tag, changeOf(v.Form, before.Decision), &answer)
		if !api.Is(err, http.StatusPreconditionFailed) {
			return before, false, err
		}
		if try == tries {
			return before, true, nil
		}
	}
}

// readAsShown reads the finding or issue, until it is as the form shows it. overtaken reports that it is not.
func readAsShown(ctx context.Context, v *page.Visit, read Read) (now Standing, tag string, overtaken bool, err error) {
	seen := v.Form.Get("seen")
	// It ends with an error only if the time is over, or the user has left.
	_ = wait.PollUntilContextTimeout(ctx, pause, patience, true, func(context.Context) (bool, error) {
		now, tag, err = read(ctx)
		// A page served by an earlier version sends no facts, and is accepted. A page that shows a doubt but does not send
		// it is refused; reloading it is enough.
		known := seen == "" || seen == now.decided() || now.isIn(seen)
		overtaken = !known && !now.isOf(v.Form, Author(v))
		return err != nil || !overtaken, nil
	})
	return now, tag, overtaken, err
}

// Author returns how the REST API names who makes the decisions of a session. The console may only import that API's
// client, which has no constant for the prefix.
func Author(v *page.Visit) string { return "apikey/" + v.Who.Key }

// isOf reports whether the author has already made the decision of the form, about the facts that the form has shown.
// Sending it again changes nothing.
func (d Standing) isOf(form url.Values, author string) bool {
	wanted, is := changeOf(form, d.Decision), ChangeTo(d.Decision)
	same := func(wanted, is *string) bool { return wanted == nil || ptr.Deref(wanted, none) == ptr.Deref(is, none) }
	return d.DecidedBy == author && d.Facts.areIn(form.Get("seen")) &&
		same(wanted.UserStatus, is.UserStatus) && same(wanted.Reason, is.Reason) &&
		same(wanted.ExpiresAt, is.ExpiresAt) && same(wanted.Comments, is.Comments)
}

// Own returns the result of the given author's decision about the state before. now is what was read after it. If
// somebody else has decided in between, it returns a state that never existed, so that an undo is refused.
func Own(before, now Standing, author string) Standing {
	now.Facts = before.Facts
	now.Stale = "" // the decision is about the facts that were seen
	// A decision that changes nothing keeps the author of the one before.
	if now.decided() != before.decided() {
		now.DecidedBy = author
	}
	return now
}

// Refusal returns the message that explains why the service has refused a form.
func Refusal(failure *api.Failure) string {
	return ui.Sentence(ui.Describe(failure.Body)) + " Nothing was changed: correct it, then decide again."
}

// Conflict returns the message that explains why a decision based on what was seen was not stored.
func (d Standing) Conflict(what, seen string) string {
	const unchanged = " Nothing was changed: look at it, then decide again."
	redecided := !strings.HasPrefix(seen, d.decided())
	switch {
	case redecided && d.UserStatus == Open && d.ExpiresAt != nil:
		return "The decision has ended meanwhile." + unchanged
	case redecided && d.DecidedBy != "":
		return d.DecidedBy + " was faster: the " + what + " is " + Words[d.UserStatus] + " now." + unchanged
	}
	return "The " + what + " has changed meanwhile." + unchanged
}
