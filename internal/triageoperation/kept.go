package triageoperation

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// MaxOperations is how many operations with a set an organization may keep.
const MaxOperations = 200

// Setless reports whether the operation has failed before its set was made: it has decided about nothing, and does not
// count towards MaxOperations.
func Setless(operation *v1alpha1.TriageOperation) bool {
	return operation.Status.CompletedAt != nil && operation.Status.SelectedAt == nil
}
