package triagepolicy

import (
	"fmt"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// MaxInForce is how many policies may be in force in an organization: each is evaluated for each finding that changes.
const MaxInForce = 100

// InForce returns the policies that decide, in the order in which they do. What status.inForce names counts, whatever
// the spec is by now.
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
			continue // It did once, under another version; its own controller says so.
		}
		out = append(out, Policy{Name: v1alpha1.ResourceName(policy.Name), Spec: spec, Program: program})
	}
	Sort(out)
	return out
}

// Outcome is what comes of a policy for one finding.
type Outcome int

// The outcomes.
const (
	// NotMatched: the expression does not match.
	NotMatched Outcome = iota
	// Failed: the expression fails, and so does not match; or the policies that come first cost too much.
	Failed
	// Decides: the policy decides about the finding.
	Decides
	// Shadowed: another policy that matches comes first.
	Shadowed
	// Overridden: a person has decided otherwise.
	Overridden
	// Agreed: a person has decided the same.
	Agreed
)

var errNothingLeft = fmt.Errorf("not evaluated: the policies that come first cost %d units for this finding, "+
	"which is all that may be spent; make them simpler, or raise spec.priority", MaxCostTogether)

// Trial is a policy that was evaluated over one finding.
type Trial struct {
	Outcome Outcome
	// By is the policy that decides; nil unless the outcome is Shadowed.
	By *Policy
	// Err is why it failed; nil unless it did.
	Err error
}

// Try evaluates the policy over a finding that is not closed as if the policy were in force, whatever its window. The
// others are in their order.
func (p *Policy) Try(others []Policy, facts *Facts, now time.Time) Trial {
	matched, err := p.Program.Matches(facts, now)
	switch status := findingstate.PersonsStatus(facts.Finding); {
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
