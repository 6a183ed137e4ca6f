package triagepolicy

import (
	"cmp"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Policy is one that decides, or would.
type Policy struct {
	Name    v1alpha1.ResourceName
	Spec    *v1alpha1.TriagePolicySpec
	Program *Program
}

// Sort puts the policies in the order in which they decide: the highest priority first, of equal ones the name that
// comes first in the alphabet.
func Sort(policies []Policy) { slices.SortFunc(policies, InOrder) }

// InOrder compares two policies by the order in which they decide.
func InOrder(a, b Policy) int {
	return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(a.Name, b.Name))
}

// First returns the first of the policies, which are in their order, that matches: it decides. Nil if none does. One
// whose evaluation fails does not match, nor does one for which those before it have left nothing to spend.
func First(policies []Policy, facts *Facts, now time.Time) *Policy {
	decides, _ := first(policies, facts, now)
	return decides
}

// first reports also whether another policy may be evaluated after them.
func first(policies []Policy, facts *Facts, now time.Time) (decides *Policy, budgetLeft bool) {
	var spent uint64
	for i := range policies {
		if spent >= MaxCostTogether {
			break
		}
		if WindowOf(policies[i].Spec, now) != Valid {
			continue
		}
		matched, cost, err := policies[i].Program.evaluate(facts, now)
		if spent += cost; err == nil && matched {
			return &policies[i], true
		}
	}
	return nil, spent < MaxCostTogether
}

// Verdict is what the policy says about a finding that it decides about.
func (p *Policy) Verdict() *v1alpha1.FindingVerdict { return findingstate.NewVerdict(p.Name, p.Spec) }

// Window says where a time is in that of a policy.
type Window int

// The windows.
const (
	Valid Window = iota
	NotYetValid
	Expired
)

// WindowOf returns where the time is in that of the spec. Both ends are whole seconds: at validFrom the policy is
// valid, at validUntil it no longer is.
func WindowOf(spec *v1alpha1.TriagePolicySpec, now time.Time) Window {
	switch {
	case spec.ValidUntil != nil && !now.Before(spec.ValidUntil.Truncate(time.Second)):
		return Expired
	case spec.ValidFrom != nil && now.Before(spec.ValidFrom.Truncate(time.Second)):
		return NotYetValid
	default:
		return Valid
	}
}

// UntilNext returns how long the window stays as it is; 0: for good.
func UntilNext(spec *v1alpha1.TriagePolicySpec, now time.Time) time.Duration {
	switch WindowOf(spec, now) {
	case NotYetValid:
		return spec.ValidFrom.Truncate(time.Second).Sub(now)
	case Valid:
		if spec.ValidUntil != nil {
			return spec.ValidUntil.Truncate(time.Second).Sub(now)
		}
	}
	return 0
}
