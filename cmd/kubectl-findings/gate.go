package main

import (
	"fmt"

	"github.com/appsec-dev/findings-operator/scanimport/reviewimport"
)

// formatMarkdown is the value of --format.
const formatMarkdown = "markdown"

// exitGateFailed is the exit status of a command that did its work, and whose result did not pass the gate that
// --fail-on sets. 1 stands for errors.
const exitGateFailed = 3

// gateError says that something did not pass its gate.
type gateError struct{ gate, because string }

func (e *gateError) Error() string {
	return fmt.Sprintf("the gate --fail-on %s failed: %s", e.gate, e.because)
}

// failedGate is the error of a gate that failed; nil where there is none.
func failedGate(result *reviewimport.GateResult) error {
	if result == nil || result.Passed {
		return nil
	}
	return &gateError{gate: string(result.Gate), because: result.Because}
}
