package builder

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// TriagePolicyBuilder builds a TriagePolicy.
type TriagePolicyBuilder struct {
	base[*TriagePolicyBuilder, *v1alpha1.TriagePolicy]
}

// TriagePolicy starts a policy in apply mode that mutes matching findings, as used in tests.
func TriagePolicy(name, match string) *TriagePolicyBuilder {
	b := &TriagePolicyBuilder{}
	return b.start(b, "TriagePolicy", name, &v1alpha1.TriagePolicy{
		Spec: v1alpha1.TriagePolicySpec{
			Match: match, Mode: v1alpha1.PolicyApply,
			Set: v1alpha1.PolicyDecision{
				UserStatus: v1alpha1.PolicyStatus(v1alpha1.UserStatusMuted), Reason: v1alpha1.DecisionUsedInTests,
			},
		},
	})
}

// Spec changes those fields of the spec that have no method of their own.
func (b *TriagePolicyBuilder) Spec(change func(*v1alpha1.TriagePolicySpec)) *TriagePolicyBuilder {
	change(&b.object.Spec)
	return b
}
