package triageoperation

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// MaxOperations is how many operations an organization may keep.
const MaxOperations = 200

// Refused reports whether the operation has failed because the organization may keep no further one. It has no set, and
// has decided about nothing.
func Refused(operation *v1alpha1.TriageOperation) bool {
	ready := v1alpha1.FindCondition(operation.Status.Conditions, v1alpha1.ConditionReady)
	return operation.Status.CompletedAt != nil && ready != nil && ready.Reason == v1alpha1.ReasonTooManyOperations
}
