package reviewimport

import (
	"fmt"
	"slices"
)

// Gate is what fails a pull request.
type Gate string

// The gates.
const (
	// GateHigh fails on an open issue of high severity, GateMedium on one of medium or high.
	GateHigh   Gate = "high"
	GateMedium Gate = "medium"
	// GateNew fails on any open issue: all are new to the base.
	GateNew Gate = "new"
)

// Gates are all there are.
var Gates = []Gate{GateHigh, GateMedium, GateNew}

// GateResult is what a gate says of a pull request.
type GateResult struct {
	Gate   Gate `json:"gate"`
	Passed bool `json:"passed"`
	// Because is a sentence for people.
	Because string `json:"because"`
}

// ParseGate returns the gate of that name.
func ParseGate(name string) (Gate, error) {
	if !slices.Contains(Gates, Gate(name)) {
		return "", fmt.Errorf("%q is no gate: use high, medium or new", name)
	}
	return Gate(name), nil
}

// Judge returns what the gate says of the open issues. Where the base was never scanned all results are new: that a
// comparison was not possible lets nothing pass.
func (g Gate) Judge(s *Summary) *GateResult {
	failing, what := s.Open, "that the base does not have"
	switch g {
	case GateHigh:
		failing, what = s.OpenHigh, "of high severity that the base does not have"
	case GateMedium:
		failing, what = s.OpenHigh+s.OpenMedium, "of medium or high severity that the base does not have"
	case GateNew:
	}
	return &GateResult{Gate: g, Passed: failing == 0, Because: fmt.Sprintf("%s %s.", number(failing, "open issue"), what)}
}

// number of things.
func number(n int, thing string) string {
	switch n {
	case 0:
		return "no " + thing
	case 1:
		return "1 " + thing
	default:
		return fmt.Sprintf("%d %ss", n, thing)
	}
}
