// Package problem defines the errors that a client of the REST API may see. Every other error is shown as an
// internal one, and its cause is only logged.
package problem

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// The messages: the contract fixes one per status, and a second one for a status of 400 that is not caused by a
// body.
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

// Problem is an error with the response that a client gets for it.
type Problem struct {
	// Status is the HTTP status.
	Status int
	// Message is the contract's fixed text.
	Message string
	// Detail explains the error and, if possible, what to do. It reveals nothing about the cause.
	Detail string
	// Code identifies the error for programs: one of the constants.
	Code string
	// Field is the parameter, header or member with the error; "" if there is none.
	Field string
	// RetryAfter is when the same request may succeed; 0 if not known.
	RetryAfter time.Duration
	// Location is the path of the resource that the error is about; "" if there is none.
	Location string

	cause error
}

// Error returns a text for logs, which includes the cause.
func (p *Problem) Error() string {
	if p.cause == nil {
		return fmt.Sprintf("%s: %s", p.Message, p.Detail)
	}
	return fmt.Sprintf("%s: %s: %v", p.Message, p.Detail, p.cause)
}

// Unwrap returns the cause, or nil.
func (p *Problem) Unwrap() error { return p.cause }

// Of returns the problem that err is or wraps; any other error becomes an internal one.
func Of(err error) *Problem {
	if p, is := errors.AsType[*Problem](err); is {
		return p
	}
	return TryAgain("the request could not be answered", err)
}

// In sets the parameter, header or member with the error.
func (p *Problem) In(field string) *Problem {
	p.Field = field
	return p
}

// Coded replaces the problem's default code.
func (p *Problem) Coded(code string) *Problem {
	p.Code = code
	return p
}

// At sets the path of the resource that the error is about.
func (p *Problem) At(location string) *Problem {
	p.Location = location
	return p
}

// InvalidBody is for an invalid body or header, and for an invalid path of an operation with a body.
func InvalidBody(detail string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Message: messageInvalidBody, Detail: detail, Code: CodeInvalid}
}

// InvalidQuery is for an invalid query, and for an invalid path of an operation without a body.
func InvalidQuery(detail string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Message: messageInvalidQuery, Detail: detail, Code: CodeInvalid}
}

// Unauthorized is for a key that is missing or not valid. The response is the same for every reason, so that it
// does not reveal which keys exist; the reason is only logged.
func Unauthorized(reason error) *Problem {
	return &Problem{
		Status: http.StatusUnauthorized, Message: messageUnauthorized, Code: CodeUnauthorized,
		Detail: "a valid API key is needed: Authorization: Bearer <API_KEY>", cause: reason,
	}
}

// Forbidden is for a valid key that lacks the scope.
func Forbidden(scope string) *Problem {
	return &Problem{
		Status: http.StatusForbidden, Message: messageForbidden, Code: CodeMissingScope,
		Detail: "the API key lacks the scope " + scope,
	}
}

// NotFound is for a resource of that kind ("finding") that the organization does not have.
func NotFound(kind string) *Problem {
	return &Problem{
		Status: http.StatusNotFound, Message: messageNotFound, Code: CodeNotFound,
		Detail: "there is no such " + kind,
	}
}

// Deleted is for a resource that was deleted while the request waited for it.
func Deleted(detail string) *Problem {
	return &Problem{Status: http.StatusNotFound, Message: messageNotFound, Detail: detail, Code: CodeNotFound}
}

// MethodNotAllowed is for a path that does not support the method.
func MethodNotAllowed() *Problem {
	return &Problem{
		Status: http.StatusMethodNotAllowed, Message: messageMethodNotAllowed, Code: CodeMethodNotAllowed,
		Detail: "use one of the methods in the header Allow",
	}
}

// PreconditionFailed is for a change that is conditional on a state that is no longer current.
func PreconditionFailed(detail string) *Problem {
	return &Problem{
		Status: http.StatusPreconditionFailed, Message: messagePrecondition, Detail: detail,
		Code: CodeChanged, Field: "if-match",
	}
}

// TooManyRequests is for a caller that has used up its limit.
func TooManyRequests() *Problem {
	return &Problem{
		Status: http.StatusTooManyRequests, Message: messageTooManyRequests, Code: CodeRateLimited,
		Detail: "wait for the number of seconds in the header retry-after, then try again",
	}
}

// Busy is for a request that exceeds a limit on concurrent work. It may succeed after the given time.
func Busy(detail string, after time.Duration) *Problem {
	return &Problem{
		Status: http.StatusTooManyRequests, Message: messageTooManyRequests, Code: CodeBusy,
		Detail: detail + "; wait for the number of seconds in the header retry-after, then try again", RetryAfter: after,
	}
}

// Refused is for a request that the state of the resource forbids. The text of reason is shown to the client.
func Refused(reason error) *Problem {
	return &Problem{Status: http.StatusConflict, Message: messageConflict, Code: CodeRefused, Detail: reason.Error()}
}

// TooLarge returns an InvalidBody about a too long body as a 413, for clients that know it.
func TooLarge(p *Problem) *Problem {
	large := *p
	large.Status, large.Message = http.StatusRequestEntityTooLarge, messageTooLarge
	return &large
}

// Unavailable returns a TryAgain as a 503, for clients that know it.
func Unavailable(p *Problem) *Problem {
	away := *p
	away.Status, away.Message = http.StatusServiceUnavailable, messageUnavailable
	return &away
}

// Internal is for an error that is not the client's fault. The detail is shown to the client, the cause is
// logged.
func Internal(detail string, cause error) *Problem {
	return &Problem{
		Status: http.StatusInternalServerError, Message: messageInternal, Code: CodeInternal,
		Detail: detail, cause: cause,
	}
}

// OutdatedCRDs is Internal for a write that the API server refuses because its CRDs lack a field. To try again does not
// help.
func OutdatedCRDs(cause error) *Problem {
	return Internal("the CRDs of this installation are older than its REST API; ask its operators to upgrade them", cause)
}

// retryAfter is when to try again. Such errors end within moments, or after a time that the service does not
// know.
const retryAfter = time.Second

// TryAgain is Internal for a request that may succeed later. Its detail ends with that advice, and the response
// has the header retry-after.
func TryAgain(detail string, cause error) *Problem {
	p := Internal(detail+"; try again", cause).Coded(CodeTryAgain)
	p.RetryAfter = retryAfter
	return p
}
