package builder

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// TriageOperationBuilder builds a TriageOperation.
type TriageOperationBuilder struct {
	base[*TriageOperationBuilder, *v1alpha1.TriageOperation]
}

// TriageOperation starts the preview of an operation that mutes the findings of a rule, as used in
// tests.
func TriageOperation(name, rule string) *TriageOperationBuilder {
	b := &TriageOperationBuilder{}
	return b.start(b, "TriageOperation", name, &v1alpha1.TriageOperation{
		Spec: v1alpha1.TriageOperationSpec{
			Select: &v1alpha1.FindingSelection{Rule: rule},
			Set: &v1alpha1.OperationDecision{
				UserStatus: v1alpha1.UserStatusMuted, Reason: v1alpha1.DecisionUsedInTests,
			},
		},
	})
}

// Committed marks the operation as committed.
func (b *TriageOperationBuilder) Committed() *TriageOperationBuilder {
	b.object.Spec.Commit = true
	return b
}

// Undoes makes the operation undo another one.
func (b *TriageOperationBuilder) Undoes(name string) *TriageOperationBuilder {
	b.object.Spec.Select, b.object.Spec.Set = nil, nil
	b.object.Spec.Undo = v1alpha1.ResourceName(name)
	return b
}

// Spec changes those fields of the spec that have no method of their own.
func (b *TriageOperationBuilder) Spec(change func(*v1alpha1.TriageOperationSpec)) *TriageOperationBuilder {
	change(&b.object.Spec)
	return b
}
