package builder

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// TriageOperationBuilder builds a TriageOperation.
type TriageOperationBuilder struct{ object v1alpha1.TriageOperation }

// TriageOperation starts the preview of an operation that mutes the findings of a rule, as used in
// tests.
func TriageOperation(name, rule string) *TriageOperationBuilder {
	return &TriageOperationBuilder{object: v1alpha1.TriageOperation{
		TypeMeta:   typeMeta("TriageOperation"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.TriageOperationSpec{
			Select: &v1alpha1.FindingSelection{Rule: rule},
			Set: &v1alpha1.OperationDecision{
				UserStatus: v1alpha1.UserStatusMuted, Reason: v1alpha1.DecisionUsedInTests,
			},
		},
	}}
}

// In sets the namespace.
func (b *TriageOperationBuilder) In(namespace string) *TriageOperationBuilder {
	b.object.Namespace = namespace
	return b
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

// Mutate changes what has no method of its own.
func (b *TriageOperationBuilder) Mutate(change func(*v1alpha1.TriageOperationSpec)) *TriageOperationBuilder {
	change(&b.object.Spec)
	return b
}

// Build returns the operation.
func (b *TriageOperationBuilder) Build() *v1alpha1.TriageOperation { return &b.object }
