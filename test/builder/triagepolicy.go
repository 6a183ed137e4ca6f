package builder

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// TriagePolicyBuilder builds a TriagePolicy.
type TriagePolicyBuilder struct{ object v1alpha1.TriagePolicy }

// TriagePolicy starts a policy in apply mode that mutes matching findings, as used in tests.
func TriagePolicy(name, match string) *TriagePolicyBuilder {
	return &TriagePolicyBuilder{object: v1alpha1.TriagePolicy{
		TypeMeta:   typeMeta("TriagePolicy"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.TriagePolicySpec{
			Match: match, Mode: v1alpha1.PolicyApply,
			Set: v1alpha1.PolicyDecision{
				UserStatus: v1alpha1.PolicyStatus(v1alpha1.UserStatusMuted), Reason: v1alpha1.DecisionUsedInTests,
			},
		},
	}}
}

// In sets the namespace.
func (b *TriagePolicyBuilder) In(namespace string) *TriagePolicyBuilder {
	b.object.Namespace = namespace
	return b
}

// Mutate changes what has no method of its own.
func (b *TriagePolicyBuilder) Mutate(change func(*v1alpha1.TriagePolicySpec)) *TriagePolicyBuilder {
	change(&b.object.Spec)
	return b
}

// Build returns the policy.
func (b *TriagePolicyBuilder) Build() *v1alpha1.TriagePolicy { return &b.object }
