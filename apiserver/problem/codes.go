package problem

// The codes of errors, as openapi.yaml lists them. Coded can replace the one that a function of this package gives.
const (
	// CodeInvalid is for a value that the contract does not allow.
	CodeInvalid = "invalid_value"
	// CodeRepeated is for a parameter or member that is given more than once.
	CodeRepeated = "repeated"
	// CodeMissing is for a required value that is missing.
	CodeMissing = "missing"
	// CodeMalformed is for input that cannot be parsed.
	CodeMalformed = "malformed"
	// CodeTooLong is for a body that exceeds its maximum length.
	CodeTooLong = "too_long"
	// CodeInvalidCursor is for a cursor that does not belong to the list.
	CodeInvalidCursor = "invalid_cursor"
	// CodeReasonRequired is for a decision without a reason where the organization requires one.
	CodeReasonRequired = "reason_required"
	// CodeUnauthorized is for a key that is missing or not valid.
	CodeUnauthorized = "unauthorized"
	// CodeMissingScope is for a valid key that lacks the scope.
	CodeMissingScope = "missing_scope"
	// CodeNotFound is for a resource or path that does not exist.
	CodeNotFound = "not_found"
	// CodeMethodNotAllowed is for a method that the path does not support.
	CodeMethodNotAllowed = "method_not_allowed"
	// CodeChanged is for a change that is conditional on a state that is no longer current.
	CodeChanged = "changed"
	// CodeRefused is for a request that the state of the resource forbids.
	CodeRefused = "refused"
	// CodeBusy is for a request that exceeds a limit on concurrent work.
	CodeBusy = "busy"
	// CodeRateLimited is for a caller that has used up its limit.
	CodeRateLimited = "rate_limited"
	// CodeInternal is for an error that is not the client's fault.
	CodeInternal = "internal"
	// CodeTryAgain is for a request that may succeed later.
	CodeTryAgain = "try_again"
	// CodeStale is for a request that would be answered from data that is too old.
	CodeStale = "stale"
)
