package openapi

import "fmt"

// InvalidError describes an error in a request. It is safe to show to a client.
type InvalidError struct {
	// Field is the name of the parameter, header or member; "" for the body as a whole.
	Field string
	// Code is one of the codes of package problem.
	Code string
	// Text explains the error to users.
	Text string
}

// Error returns the text.
func (e *InvalidError) Error() string { return e.Text }

func invalid(field, code, format string, args ...any) error {
	return &InvalidError{Field: field, Code: code, Text: fmt.Sprintf(format, args...)}
}
