package triagepolicy

import (
	"fmt"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// MaxInForce is the maximum number of policies in force in an organization: each is evaluated for each changed
// finding.
const MaxInForce = 100

// Stopped reports whether the declared spec matched too many findings at the last count.
func Stopped(policy *v1alpha1.TriagePolicy) bool {
	in := v1alpha1.FindCondition(policy.Status.Conditions, v1alpha1.ConditionInForce)
	return in != nil && in.Reason == v1alpha1.ReasonTooMany && in.ObservedGeneration == policy.Generation
}

// Limit returns how many findings a policy may match. A stopped policy must fall well below its limit, or adding and
// removing a single finding could unmute and mute thousands. It is at least 1.
func Limit(spec *v1alpha1.TriagePolicySpec, stopped bool) int32 {
	if stopped {
		return max(1, spec.Limit()*9/10)
	}
	return spec.Limit()
}

// InForce returns the policies in force, in the order in which they decide. The spec in status.inForce counts, not
// the declared one.
func InForce(declared []v1alpha1.TriagePolicy, compile func(string) (*Program, error)) []Policy {
	var out []Policy
	for i := range declared {
		policy := &declared[i]
		if policy.Status.InForce == nil || !policy.DeletionTimestamp.IsZero() {
			continue
		}
		spec := &policy.Status.InForce.Spec
		program, err := compile(spec.Match)
		if err != nil {
			continue // It compiled with another version; the policy's controller reports that.
		}
		out = append(out, Policy{Name: v1alpha1.ResourceName(policy.Name), Spec: spec, Program: program})
	}
	Sort(out)
	return out
}

// Outcome is the result of a policy for one finding.
type Outcome int

// The outcomes.
const (
	// NotMatched: the expression does not match.
	NotMatched Outcome = iota
	// Failed: the evaluation failed, so it does not match; or the policies before it used up the budget.
	Failed
	// Decides: the policy decides about the finding.
	Decides
	// Shadowed: a policy with precedence matches too.
	Shadowed
	// Overridden: another decision, not made by a policy, is in force.
	Overridden
	// Agreed: the same decision, not made by a policy, is in force.
	Agreed
)

var errNothingLeft = fmt.Errorf("not evaluated: the policies that come first cost %d units for this finding, "+
	"which is all that may be spent; make them simpler, or raise spec.priority", maxCostTogether)

// Trial is the result of evaluating a policy over one finding.
type Trial struct {
	Outcome Outcome
	// By is the policy that decides; nil unless the outcome is Shadowed.
	By *Policy
	// Err is why the evaluation failed; nil unless the outcome is Failed.
	Err error
}

// Try evaluates the policy over a finding that is not closed, as if the policy were in force and regardless of its
// window. others must be sorted.
func (p *Policy) Try(others []Policy, facts *Facts, now time.Time) Trial {
	matched, err := p.Program.Matches(facts, now)
	switch status := findingstate.StatusWithoutPolicies(facts.Finding); {
	case err != nil:
		return Trial{Outcome: Failed, Err: err}
	case !matched:
		return Trial{Outcome: NotMatched}
	case status == v1alpha1.UserStatus(p.Spec.Set.UserStatus):
		return Trial{Outcome: Agreed}
	case status != v1alpha1.UserStatusOpen:
		return Trial{Outcome: Overridden}
	}
	before, _ := slices.BinarySearchFunc(others, *p, InOrder)
	switch by, left := first(others[:before], facts, now); {
	case by != nil:
		return Trial{Outcome: Shadowed, By: by}
	case !left:
		return Trial{Outcome: Failed, Err: errNothingLeft}
	}
	return Trial{Outcome: Decides}
}
