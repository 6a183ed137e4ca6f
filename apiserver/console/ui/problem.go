package ui

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/client"
)

// Problem is the content of an error page.
type Problem struct {
	Status int
	Detail string
	// RetryAt is when to try again; zero if that would not help.
	RetryAt   time.Time
	RequestID string
	// MissingScope reports that the key lacks a scope.
	MissingScope bool
	// Busy reports that too many requests like this one are running.
	Busy bool
	// Change reports that the request was a change, and not the view of a page.
	Change bool
	// Form is the page whose form was sent; empty if there is none.
	Form string
	// Login is the login page that leads back here.
	Login string
}

// Title summarises the error.
func (p Problem) Title() string {
	switch p.Status {
	case http.StatusBadRequest:
		if p.Change {
			return "Not accepted"
		}
		return "This address is not valid"
	case http.StatusForbidden:
		return "Not allowed"
	case http.StatusNotFound:
		return "Not found"
	case http.StatusMethodNotAllowed:
		return "Not possible at this address"
	case http.StatusConflict:
		return "Not accepted"
	case http.StatusPreconditionFailed:
		return "The page is out of date"
	case http.StatusTooManyRequests:
		return "Too many requests"
	}
	return "Something went wrong"
}

// Next explains on a page what to do about it.
func (p Problem) Next() string {
	again := " Wait until the time below, then reload the page."
	if p.Change {
		again = " Wait until the time below, then send the form again from its page."
	}
	return p.next("the request id below", again)
}

// next explains what to do about it. The caller words the request id, and when to try again after too many requests.
func (p Problem) next(requestID, again string) string {
	switch p.Status {
	case http.StatusBadRequest:
		if p.Change {
			return "Nothing was changed. Correct it in the form, and try again."
		}
		return "Go back, or start from a list without filters."
	case http.StatusForbidden:
		return p.forbidden()
	case http.StatusNotFound:
		return "Check the address, or look in the list: what it names may have been removed, or belong to another organization."
	case http.StatusMethodNotAllowed:
		return "Nothing was changed. The page may be of another version of the service: go back, copy what you typed, load the " +
			"page again, then send the form from there."
	case http.StatusConflict:
		return "Nothing was changed. Do what the reason asks, then send the form again from its page."
	case http.StatusPreconditionFailed:
		return "Nothing was changed. Load the page with the form again, look at what it is about now, then decide again."
	case http.StatusTooManyRequests:
		if p.Busy {
			return "Your organization has too many such requests at once." + again
		}
		return limited + again
	}
	if p.Change {
		return "Load the page with the form again to see whether the change was stored. If the problem stays, tell whoever " +
			"runs the service " + requestID + "."
	}
	return "Reload the page. If the problem stays, tell whoever runs the service " + requestID + "."
}

// forbidden explains what to do about a request that is not allowed.
func (p Problem) forbidden() string {
	switch {
	case p.MissingScope:
		return "Ask whoever manages the organization's API keys for a key with that scope, and log in with that."
	case p.Change:
		return "Load the page with the form again, and send the form from there."
	}
	return "Load the page again."
}

// JSON returns the error for modules. Their message has no time and no request id below it.
func (p Problem) JSON() any {
	next := p.next("the request id "+p.RequestID, "")
	if wait := time.Until(p.RetryAt); wait > 0 {
		next += fmt.Sprintf(" Try again in %.0f seconds.", math.Ceil(wait.Seconds()))
	}
	return struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
		Next   string `json:"next"`
	}{p.Title(), p.Detail, next}
}

// limited explains a refusal because of a rate limit.
const limited = "Your API key, or your address, has sent as many requests as it may in a minute."

// labels are the forms' names for the members of a request.
var labels = map[string]string{
	"expires_at": "the end date", "set.expires_at": "the end date", "valid_until": "the end date",
	"reason": "the reason", "set.reason": "the reason", "match": "the expression", "name": "the name",
	"max_findings": "the highest number of matches", "comments": "the comment", "set.comments": "the comment",
	"set.comment": "the comment",
}

// The advice about a status of 429 to programs, and to readers of a page, which shows no headers.
const (
	waitAsTold  = "wait for the number of seconds in the header retry-after"
	waitAMoment = "wait a moment"
)

// Describe returns an error in a request in the words of the form that it came from.
func Describe(failure client.Error) string {
	failure.Detail = strings.Replace(failure.Detail, waitAsTold, waitAMoment, 1)
	rest, isFirst := strings.CutPrefix(failure.Detail, failure.Field)
	label, known := labels[failure.Field]
	if !isFirst || !known {
		return failure.Detail
	}
	return label + strings.TrimSuffix(rest, " and after valid_from") // no form has that field
}
