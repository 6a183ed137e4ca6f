package triagepolicy

import (
	"cmp"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Policy is a compiled policy.
type Policy struct {
	Name    v1alpha1.ResourceName
	Spec    *v1alpha1.TriagePolicySpec
	Program *Program
}

// Sort sorts the policies in the order in which they decide: highest priority first, then alphabetically by name.
func Sort(policies []Policy) { slices.SortFunc(policies, InOrder) }

// InOrder compares two policies by the order in which they decide.
func InOrder(a, b Policy) int {
	return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(a.Name, b.Name))
}

// First returns the first matching policy, which decides; nil if none matches. The policies must be sorted. A policy
// does not match if its evaluation fails, or if the policies before it have used up maxCostTogether.
func First(policies []Policy, facts *Facts, now time.Time) *Policy {
	decides, _ := first(policies, facts, now)
	return decides
}

// first also reports whether the budget allows evaluating another policy after these.
func first(policies []Policy, facts *Facts, now time.Time) (decides *Policy, budgetLeft bool) {
	var spent uint64
	for i := range policies {
		if spent >= maxCostTogether {
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
	return nil, spent < maxCostTogether
}

// Verdict returns the policy's verdict on a finding that it decides about.
func (p *Policy) Verdict() *v1alpha1.FindingVerdict { return findingstate.NewVerdict(p.Name, p.Spec) }

// Window is the position of a time relative to a policy's validity period.
type Window int

// The windows.
const (
	Valid Window = iota
	NotYetValid
	Expired
)

// WindowOf returns the position of the time relative to the spec's validity period. Both ends are in whole
// seconds; validFrom is inclusive, validUntil exclusive.
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

// UntilNext returns how long until the window changes; 0 if it never does.
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
