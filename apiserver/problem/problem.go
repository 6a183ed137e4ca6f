// Package problem holds the errors that a client of the REST API may see. Whatever else goes
// wrong is an internal error to it, and its cause is for the log alone.
package problem

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// The messages: the contract fixes them, one for each status, and a second one for a status
// of 400 that no body causes.
const (
	messageInvalidBody      = "Invalid request body"
	messageInvalidQuery     = "Invalid query parameter"
	messageUnauthorized     = "Unauthorized"
	messageForbidden        = "Forbidden"
	messageNotFound         = "Resource not found"
	messageMethodNotAllowed = "Method not allowed"
	messagePrecondition     = "Precondition failed"
	messageTooManyRequests  = "Rate limit exceeded"
	messageInternal         = "Internal server error"
)

// Problem is an error with the answer that a client gets for it.
type Problem struct {
	// Status is the HTTP status.
	Status int
	// Message is the contract's fixed text.
	Message string
	// Detail says what is wrong, and what to do where something can be done. It holds
	// nothing of the cause.
	Detail string
	// RetryAfter is when the same request may succeed; 0 where that is not known.
	RetryAfter time.Duration

	cause error
}

// Error is for logs: it holds the cause.
func (p *Problem) Error() string {
	if p.cause == nil {
		return fmt.Sprintf("%s: %s", p.Message, p.Detail)
	}
	return fmt.Sprintf("%s: %s: %v", p.Message, p.Detail, p.cause)
}

// Unwrap returns the cause, or nil.
func (p *Problem) Unwrap() error { return p.cause }

// Of returns the problem that err is or wraps; any other error is internal.
func Of(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	return TryAgain("the request could not be answered", err)
}

// InvalidBody is for a body or a header that is not valid, and for the path of a request that has a body.
func InvalidBody(detail string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Message: messageInvalidBody, Detail: detail}
}

// InvalidQuery is for a query that is not valid, and for the path of a request that has no body.
func InvalidQuery(detail string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Message: messageInvalidQuery, Detail: detail}
}

// Unauthorized is for a key that is missing or not valid. A client gets the same for every
// reason, so that it tells nobody which keys there are; the reason is for the log.
func Unauthorized(reason error) *Problem {
	return &Problem{
		Status: http.StatusUnauthorized, Message: messageUnauthorized,
		Detail: "a valid API key is needed: Authorization: Bearer <API_KEY>", cause: reason,
	}
}

// Forbidden is for a valid key that lacks the scope.
func Forbidden(scope string) *Problem {
	return &Problem{
		Status: http.StatusForbidden, Message: messageForbidden,
		Detail: "the API key lacks the scope " + scope,
	}
}

// NotFound is for a resource of that sort ("finding") that the organization does not have.
func NotFound(sort string) *Problem {
	return &Problem{
		Status: http.StatusNotFound, Message: messageNotFound,
		Detail: "there is no such " + sort,
	}
}

// MethodNotAllowed is for a path that does not know the method.
func MethodNotAllowed() *Problem {
	return &Problem{
		Status: http.StatusMethodNotAllowed, Message: messageMethodNotAllowed,
		Detail: "the header Allow lists the methods that the path knows",
	}
}

// PreconditionFailed is for a change that is conditional on a state that is no longer there.
func PreconditionFailed(detail string) *Problem {
	return &Problem{Status: http.StatusPreconditionFailed, Message: messagePrecondition, Detail: detail}
}

// IsPreconditionFailed reports whether err is or wraps that problem.
func IsPreconditionFailed(err error) bool {
	var p *Problem
	return errors.As(err, &p) && p.Status == http.StatusPreconditionFailed
}

// TooManyRequests is for a caller that has used its limit up.
func TooManyRequests() *Problem {
	return &Problem{
		Status: http.StatusTooManyRequests, Message: messageTooManyRequests,
		Detail: "wait for the seconds in the header retry-after",
	}
}

// Internal is for what is not the client's fault. The detail goes to the client, the cause
// to the log.
func Internal(detail string, cause error) *Problem {
	return &Problem{
		Status: http.StatusInternalServerError, Message: messageInternal,
		Detail: detail, cause: cause,
	}
}

// retryAfter is when to try again. What keeps the service from answering is over within moments, or
// after a time that it does not know.
const retryAfter = time.Second

// TryAgain is Internal where the same request may succeed later. The detail ends by saying so, and the
// answer has the header retry-after.
func TryAgain(detail string, cause error) *Problem {
	p := Internal(detail+"; try again", cause)
	p.RetryAfter = retryAfter
	return p
}
