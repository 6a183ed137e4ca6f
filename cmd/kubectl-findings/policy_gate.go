package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// policyCheck is a reason for a policy to fail its gate.
type policyCheck struct {
	word string
	// bounded means that measure is a count, for which a bound may be given.
	bounded bool
	measure func(*policyReport) int
	// says describes the failure, with a format verb for the count if it is bounded.
	says string
}

var policyChecks = []policyCheck{
	{"gains", true, func(r *policyReport) int { return len(r.Gained) }, "findings gained: %d"},
	{"losses", true, func(r *policyReport) int { return len(r.Lost) }, "findings lost: %d"},
	{
		"changes", true, func(r *policyReport) int { return len(r.Gained) + len(r.Lost) + len(r.Changed) },
		"findings gained, lost or decided differently: %d",
	},
	{"failures", true, func(r *policyReport) int { return r.Failed }, "findings for which the expression failed: %d"},
	{"stopped", false, func(r *policyReport) int { return oneIf(r.Stopped != "") }, "it could not come into force"},
	{
		"inert", false,
		func(r *policyReport) int { return oneIf(r.Applied == 0 || r.Stopped == v1alpha1.ReasonPolicyExpired) },
		"it decides about no finding",
	},
}

// modeNamed fails every gate: what it counts depends on whether the mode stays.
var modeNamed = policyBound{policyCheck: policyCheck{
	measure: func(r *policyReport) int { return oneIf(r.mayLoseMode) },
	says:    "the file no longer names spec.mode: write mode: Apply or mode: Preview into it",
}}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

func gateWords() []string {
	out := make([]string, len(policyChecks))
	for i, check := range policyChecks {
		out[i] = check.word
	}
	return out
}

// policyGate is the gate that --fail-on sets.
type policyGate struct {
	given []string
	bound []policyBound
}

// policyBound is a check and the largest count that passes.
type policyBound struct {
	policyCheck
	most int
}

func parsePolicyGate(given []string) (*policyGate, error) {
	gate := &policyGate{given: given}
	var errs []error
	for _, text := range given {
		word, most, bounded := strings.Cut(text, "=")
		at := slices.IndexFunc(policyChecks, func(c policyCheck) bool { return strings.EqualFold(c.word, word) })
		if at < 0 {
			errs = append(errs, fmt.Errorf("--fail-on is %q and must be %s", text, alternatives(gateWords())))
			continue
		}
		check := policyBound{policyCheck: policyChecks[at]}
		if bounded {
			number, err := strconv.Atoi(most)
			if err != nil || number < 0 || !check.bounded {
				errs = append(errs, fmt.Errorf("--fail-on is %q: a bound is a number from 0, and %s", text, check.takes()))
				continue
			}
			check.most = number
		}
		gate.bound = append(gate.bound, check)
	}
	return gate, errors.Join(errs...)
}

func (c policyCheck) takes() string {
	if c.bounded {
		return "reads " + c.word + "=50"
	}
	return c.word + " takes none"
}

// policyGateResult reports whether the policies pass.
type policyGateResult struct {
	FailOn string `json:"failOn"`
	Passed bool   `json:"passed"`
	// Because lists what is wrong with which policy.
	Because []string `json:"because,omitempty"`
}

// judge returns the gate's result, or nil without a gate.
func (g *policyGate) judge(reports []*policyReport) *policyGateResult {
	if len(g.bound) == 0 {
		return nil
	}
	result := &policyGateResult{FailOn: strings.Join(g.given, ",")}
	for _, report := range reports {
		for _, check := range slices.Concat([]policyBound{modeNamed}, g.bound) {
			found := check.measure(report)
			if found <= check.most {
				continue
			}
			because := check.says
			if check.bounded {
				because = fmt.Sprintf(because, found)
			}
			result.Because = append(result.Because, report.Policy+": "+because)
		}
	}
	result.Passed = len(result.Because) == 0
	return result
}

// err returns the error of a failed gate, or nil.
func (r *policyGateResult) err() error {
	if r == nil || r.Passed {
		return nil
	}
	return &gateError{gate: r.FailOn, because: strings.Join(r.Because, "; ")}
}
