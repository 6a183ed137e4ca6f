package openapi

import "fmt"

// What is wrong with a parameter or a member, in one word.
const (
	// CodeInvalid is for a value that is not one of those described.
	CodeInvalid = "invalid_value"
	// CodeRepeated is for what is given more than once.
	CodeRepeated = "repeated"
	// CodeMissing is for a required value that is missing.
	CodeMissing = "missing"
	// CodeMalformed is for what cannot be read at all.
	CodeMalformed = "malformed"
	// CodeTooLong is for a body that is longer than is read.
	CodeTooLong = "too_long"
)

// InvalidError says what is wrong with a request, fit for a client.
type InvalidError struct {
	// Field is the name of the parameter, header or member; "" where it is the body as a whole.
	Field string
	// Code is one of the constants.
	Code string
	// Text is for people.
	Text string
}

// Error returns the text.
func (e *InvalidError) Error() string { return e.Text }

func invalid(field, code, format string, args ...any) error {
	return &InvalidError{Field: field, Code: code, Text: fmt.Sprintf(format, args...)}
}
