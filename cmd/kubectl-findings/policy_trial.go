package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	rules "github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// trials compare the current verdicts with those after applying the policies of the files.
type trials struct {
	world *world
	now   time.Time
	// before holds the policies in force, after those that would be, both in order of precedence.
	before, after []rules.Policy
	all           []*trial
}

// trial is one policy from the files.
type trial struct {
	filed  *filedPolicy
	policy rules.Policy
	// others holds the policies that would be in force beside it.
	others []rules.Policy
	// ends means that applying the file would end the decisions of the version in force.
	ends   bool
	report *policyReport
}

func newTrials(w *world, filed []*filedPolicy, now time.Time) *trials {
	declared := make([]v1alpha1.TriagePolicy, 0, len(w.policies))
	for _, policy := range w.policies {
		declared = append(declared, *policy)
	}
	t := &trials{world: w, now: now, before: rules.InForce(declared, rules.Compile)}
	t.after = slices.Clone(t.before)
	for _, policy := range filed {
		policy.keepMode(w.policies[policy.Name])
		left := without(t.after, policy.Name)
		ends := len(left) < len(t.after) && decidesNothingYet(&policy.Spec, now)
		t.all = append(t.all, &trial{filed: policy, policy: asInForce(policy, now), ends: ends})
		t.after = left
	}
	for _, trial := range t.all {
		if !trial.ends {
			t.after = append(t.after, trial.policy)
		}
	}
	rules.Sort(t.after)
	for _, trial := range t.all {
		trial.others = without(t.after, trial.filed.Name)
		trial.report = t.newReport(trial)
	}
	return t
}

// without returns the policies except the named one.
func without(policies []rules.Policy, name string) []rules.Policy {
	return slices.DeleteFunc(slices.Clone(policies), func(p rules.Policy) bool { return string(p.Name) == name })
}

// decidesNothingYet reports whether the author wants the policy to decide later, or only after a preview.
func decidesNothingYet(spec *v1alpha1.TriagePolicySpec, now time.Time) bool {
	return spec.Mode != v1alpha1.PolicyApply || rules.WindowOf(spec, now) == rules.NotYetValid
}

// asInForce returns the policy as if it already applied, because users want to know its effect in advance.
func asInForce(filed *filedPolicy, now time.Time) rules.Policy {
	spec := filed.Spec
	spec.Mode = v1alpha1.PolicyApply
	if rules.WindowOf(&spec, now) == rules.NotYetValid {
		spec.ValidFrom = nil
	}
	return rules.Policy{Name: v1alpha1.ResourceName(filed.Name), Spec: &spec, Program: filed.program}
}

// add evaluates the policies for a finding.
func (t *trials) add(finding *v1alpha1.Finding) {
	if finding.Spec.Closed != nil {
		return
	}
	facts := &rules.Facts{
		Finding:    finding,
		Project:    t.world.projects[string(finding.Spec.ProjectRef.Name)],
		Repository: t.world.repositories[string(finding.Spec.RepositoryRef.Name)],
	}
	var was, becomes *v1alpha1.FindingVerdict
	if findingstate.StatusWithoutPolicies(finding) == v1alpha1.UserStatusOpen {
		was, becomes = verdictFrom(rules.First(t.before, facts, t.now)), verdictFrom(rules.First(t.after, facts, t.now))
	}
	for _, trial := range t.all {
		trial.report.count(facts.Finding, trial.policy.Try(trial.others, facts, t.now))
		trial.report.compare(finding, was, becomes)
	}
}

func verdictFrom(policy *rules.Policy) *v1alpha1.FindingVerdict {
	if policy == nil {
		return nil
	}
	return policy.Verdict()
}

func (t *trials) reports() []*policyReport {
	var out []*policyReport
	for _, trial := range t.all {
		trial.report.conclude(trial, t)
		out = append(out, trial.report)
	}
	slices.SortFunc(out, func(a, b *policyReport) int { return cmp.Compare(a.Policy, b.Policy) })
	return out
}
