package reviewimport

import (
	"fmt"
	"slices"
)

// Gate is the condition that fails a pull request.
type Gate string

// The gates.
const (
	// GateHigh fails on an open issue of high severity, GateMedium on one of medium or high.
	GateHigh   Gate = "high"
	GateMedium Gate = "medium"
	// GateNew fails on any open issue: all are new to the base.
	GateNew Gate = "new"
)

// Gates lists all gates.
var Gates = []Gate{GateHigh, GateMedium, GateNew}

// GateResult is a gate's verdict on a pull request.
type GateResult struct {
	Gate   Gate `json:"gate"`
	Passed bool `json:"passed"`
	// Because is a sentence for users.
	Because string `json:"because"`
}

// ParseGate returns the gate with that name.
func ParseGate(name string) (Gate, error) {
	if !slices.Contains(Gates, Gate(name)) {
		return "", fmt.Errorf("%q is no gate: use high, medium or new", name)
	}
	return Gate(name), nil
}

// Judge returns the gate's verdict on the open issues. If the base was never scanned, all results count as new.
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

// number formats a number of things.
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
