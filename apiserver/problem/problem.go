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
	messageConflict         = "Conflict"
	messageTooManyRequests  = "Rate limit exceeded"
	messageTooLarge         = "Payload too large"
	messageUnavailable      = "Service unavailable"
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
	// Code tells programs what is wrong; its words do not change.
	Code string
	// Field is the parameter, header or member that is wrong; "" where it is none.
	Field string
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

// The codes. An InvalidBody and an InvalidQuery may have others, by Coded.
const (
	codeInvalid          = "invalid_value"
	codeUnauthorized     = "unauthorized"
	codeMissingScope     = "missing_scope"
	codeNotFound         = "not_found"
	codeMethodNotAllowed = "method_not_allowed"
	codeChanged          = "changed"
	codeRateLimited      = "rate_limited"
	codeBusy             = "busy"
	codeRefused          = "refused"
	codeInternal         = "internal"
	codeTryAgain         = "try_again"
	// CodeInvalidCursor is for a cursor that is not the list's.
	CodeInvalidCursor = "invalid_cursor"
	// CodeReasonRequired is for a decision without a reason where the organization requires one.
	CodeReasonRequired = "reason_required"
	// CodeStale is for an answer that would rest on data that is too old.
	CodeStale = "stale"
)

// In names the parameter, header or member that is wrong.
func (p *Problem) In(field string) *Problem {
	p.Field = field
	return p
}

// Coded gives a problem another code than that of its sort.
func (p *Problem) Coded(code string) *Problem {
	p.Code = code
	return p
}

// InvalidBody is for an invalid body or header, and for an invalid path of an operation with a body.
func InvalidBody(detail string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Message: messageInvalidBody, Detail: detail, Code: codeInvalid}
}

// InvalidQuery is for an invalid query, and for an invalid path of an operation without a body.
func InvalidQuery(detail string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Message: messageInvalidQuery, Detail: detail, Code: codeInvalid}
}

// Unauthorized is for a key that is missing or not valid. A client gets the same for every
// reason, so that it tells nobody which keys there are; the reason is for the log.
func Unauthorized(reason error) *Problem {
	return &Problem{
		Status: http.StatusUnauthorized, Message: messageUnauthorized, Code: codeUnauthorized,
		Detail: "a valid API key is needed: Authorization: Bearer <API_KEY>", cause: reason,
	}
}

// Forbidden is for a valid key that lacks the scope.
func Forbidden(scope string) *Problem {
	return &Problem{
		Status: http.StatusForbidden, Message: messageForbidden, Code: codeMissingScope,
		Detail: "the API key lacks the scope " + scope,
	}
}

// NotFound is for a resource of that sort ("finding") that the organization does not have.
func NotFound(sort string) *Problem {
	return &Problem{
		Status: http.StatusNotFound, Message: messageNotFound, Code: codeNotFound,
		Detail: "there is no such " + sort,
	}
}

// MethodNotAllowed is for a path that does not support the method.
func MethodNotAllowed() *Problem {
	return &Problem{
		Status: http.StatusMethodNotAllowed, Message: messageMethodNotAllowed, Code: codeMethodNotAllowed,
		Detail: "the header Allow lists the methods that the path knows",
	}
}

// PreconditionFailed is for a change that is conditional on a state that is no longer there.
func PreconditionFailed(detail string) *Problem {
	return &Problem{
		Status: http.StatusPreconditionFailed, Message: messagePrecondition, Detail: detail,
		Code: codeChanged, Field: "if-match",
	}
}

// IsPreconditionFailed reports whether err is or wraps that problem.
func IsPreconditionFailed(err error) bool {
	var p *Problem
	return errors.As(err, &p) && p.Status == http.StatusPreconditionFailed
}

// TooManyRequests is for a caller that has used its limit up.
func TooManyRequests() *Problem {
	return &Problem{
		Status: http.StatusTooManyRequests, Message: messageTooManyRequests, Code: codeRateLimited,
		Detail: "wait for the seconds in the header retry-after",
	}
}

// Busy is for what cannot begin beside what is under way, and may after a time.
func Busy(detail string, after time.Duration) *Problem {
	return &Problem{
		Status: http.StatusTooManyRequests, Message: messageTooManyRequests, Code: codeBusy,
		Detail: detail + "; wait for the seconds in the header retry-after", RetryAfter: after,
	}
}

// Refused is for a request that the state of the resource forbids. What the reason says goes to the client.
func Refused(reason error) *Problem {
	return &Problem{Status: http.StatusConflict, Message: messageConflict, Code: codeRefused, Detail: reason.Error()}
}

// TooLarge is an InvalidBody that is too long, to a client that knows 413.
func TooLarge(p *Problem) *Problem {
	large := *p
	large.Status, large.Message = http.StatusRequestEntityTooLarge, messageTooLarge
	return &large
}

// Unavailable is a TryAgain to a client that knows 503.
func Unavailable(p *Problem) *Problem {
	away := *p
	away.Status, away.Message = http.StatusServiceUnavailable, messageUnavailable
	return &away
}

// Internal is for what is not the client's fault. The detail goes to the client, the cause
// to the log.
func Internal(detail string, cause error) *Problem {
	return &Problem{
		Status: http.StatusInternalServerError, Message: messageInternal, Code: codeInternal,
		Detail: detail, cause: cause,
	}
}

// retryAfter is when to try again. What keeps the service from answering is over within moments, or
// after a time that it does not know.
const retryAfter = time.Second

// TryAgain is Internal where the same request may succeed later. The detail ends by saying so, and the
// answer has the header retry-after.
func TryAgain(detail string, cause error) *Problem {
	p := Internal(detail+"; try again", cause).Coded(codeTryAgain)
	p.RetryAfter = retryAfter
	return p
}
