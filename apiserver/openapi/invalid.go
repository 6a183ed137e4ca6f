package openapi

import "fmt"

// Codes of errors in a parameter or a member.
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
)

// InvalidError describes an error in a request. It is safe to show to a client.
type InvalidError struct {
	// Field is the name of the parameter, header or member; "" for the body as a whole.
	Field string
	// Code is one of the constants.
	Code string
	// Text explains the error to people.
	Text string
}

// Error returns the text.
func (e *InvalidError) Error() string { return e.Text }

func invalid(field, code, format string, args ...any) error {
	return &InvalidError{Field: field, Code: code, Text: fmt.Sprintf(format, args...)}
}
