package main

import (
	"fmt"

	"github.com/appsec-dev/findings-operator/scanimport/reviewimport"
)

// formatMarkdown is the only value of --format.
const formatMarkdown = "markdown"

// exitGateFailed is the exit status of a command that succeeded but whose result did not pass the gate set by
// --fail-on. 1 means an error.
const exitGateFailed = 3

// gateError reports a gate that failed.
type gateError struct{ gate, because string }

func (e *gateError) Error() string {
	return fmt.Sprintf("the gate --fail-on %s failed: %s", e.gate, e.because)
}

// failedGate returns the error for a failed gate, or nil.
func failedGate(result *reviewimport.GateResult) error {
	if result == nil || result.Passed {
		return nil
	}
	return &gateError{gate: string(result.Gate), because: result.Because}
}
