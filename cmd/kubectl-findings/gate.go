package main

import (
	"fmt"

	"github.com/appsec-dev/findings-operator/scanimport/reviewimport"
)

// formatMarkdown is the value of --format.
const formatMarkdown = "markdown"

// exitGateFailed is the exit status of a review that was recorded and did not pass its gate. 1 stands for errors.
const exitGateFailed = 3

// gateError says that a pull request did not pass its gate.
type gateError struct{ result *reviewimport.GateResult }

func (e *gateError) Error() string {
	return fmt.Sprintf("the gate --fail-on %s failed: %s", e.result.Gate, e.result.Because)
}

// failedGate is the error of a gate that failed; nil where there is none.
func failedGate(result *reviewimport.GateResult) error {
	if result == nil || result.Passed {
		return nil
	}
	return &gateError{result}
}
