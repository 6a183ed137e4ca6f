package triagepolicy

import (
	"fmt"
	"testing"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	rules "github.com/appsec-dev/findings-operator/internal/triagepolicy"
	"github.com/appsec-dev/findings-operator/test/builder"
	"github.com/appsec-dev/findings-operator/test/harness"
)

// If too many come into force at the same time, exactly those that decide last are taken out again.
func TestNoMoreThanMayBeAreInForce(t *testing.T) {
	var others []rules.Policy
	for i := range rules.MaxInForce {
		others = append(others, rules.Policy{Name: v1alpha1.ResourceName(fmt.Sprintf("p-%03d", i)), Spec: &v1alpha1.TriagePolicySpec{}})
	}
	for _, c := range []struct {
		reason, name string
		inForce      *v1alpha1.PolicyInForce
		others       []rules.Policy
		want         bool
	}{
		{"one more", "a", nil, others, true},
		{"the last one that fits", "z", nil, others[1:], false},
		{"one too many, which comes last", "z", &v1alpha1.PolicyInForce{}, others, true},
		{"one too many, which comes first", "a", &v1alpha1.PolicyInForce{}, others, false},
		{"one too many, of a higher priority", "z", &v1alpha1.PolicyInForce{Spec: v1alpha1.TriagePolicySpec{Priority: 1}}, others, false},
		{"not one too many", "z", &v1alpha1.PolicyInForce{}, others[1:], false},
	} {
		s := newScope()
		s.Object.Name, s.Object.Status.InForce = c.name, c.inForce
		harness.Same(t, c.reason, c.want, full(s, c.others))
	}
	var policies []v1alpha1.TriagePolicy
	for i := range rules.MaxInForce + 1 {
		p := builder.TriagePolicy(fmt.Sprintf("p-%03d", i), "true").Build()
		p.Status.InForce, p.Generation = &v1alpha1.PolicyInForce{Generation: 1, Spec: p.Spec}, 2
		p.Spec.Match = "no expression"
		policies = append(policies, *p)
	}
	for i, want := range map[int]bool{rules.MaxInForce - 1: true, rules.MaxInForce: false} {
		r := over(nil, policies...)
		s := after(t, r, &policies[i], r.compile, r.count, r.putInForce)
		harness.Same(t, policies[i].Name+" stays in force, although its edit does not compile", want, s.Status.InForce != nil)
	}
}

// The other policy decides about one of the three findings, and a person has muted another.
func TestAnEditThatCannotDecideIsNotWhatIsCounted(t *testing.T) {
	findings := []v1alpha1.Finding{*fact(0, nil).Finding, *fact(1, nil).Finding, *fact(2, nil).Finding}
	findings[0].Spec.Class = "B"
	findings[1].Spec.Triage.UserStatus = v1alpha1.UserStatusMuted
	other := *builder.TriagePolicy("other", "finding.class == 'B'").Spec(func(s *v1alpha1.TriagePolicySpec) { s.Priority = 50 }).Build()
	other.Status.InForce = &v1alpha1.PolicyInForce{Generation: 1, Spec: other.Spec}
	for name, edit := range map[string]func(*v1alpha1.TriagePolicySpec){
		"the priority": func(s *v1alpha1.TriagePolicySpec) { s.Priority = 100 },
		"the decision": func(s *v1alpha1.TriagePolicySpec) { s.Set.UserStatus = "active" },
	} {
		policy := builder.TriagePolicy("p", "true").Build()
		policy.Status.InForce = &v1alpha1.PolicyInForce{Generation: 1, Spec: policy.Spec}
		policy.Generation, policy.Spec.MaxFindings = 2, 2
		edit(&policy.Spec)
		r := over(findings, other, *policy)
		s := after(t, r, policy, r.compile, r.count, r.putInForce)
		s.recordCounts("")
		got := s.Status
		harness.Same(t, name+": the generation in force", int64(1), got.InForce.Generation)
		harness.Same(t, name+": matched, applied, shadowed, overridden", []int32{3, 1, 1, 0},
			[]int32{got.Matched, got.Applied, got.Shadowed, got.Overridden})
		mem := r.memoryOf(policy.Namespace)
		harness.Same(t, name+": remembered generations", 2, len(mem.policies))
		policy.Status.InForce = &v1alpha1.PolicyInForce{Generation: 2, Spec: policy.Spec}
		after(t, r, policy, r.compile, r.count)
		harness.Same(t, name+": remembered generations, once the edit is in force", 1, len(mem.policies))
	}
}
