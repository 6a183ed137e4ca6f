package triageoperation

import "github.com/appsec-dev/findings-operator/api/v1alpha1"

// MaxOperations is the maximum number of operations with a set per organization. Undos may exceed it, see Limit.
const MaxOperations = 200

// Limit returns how much of a bound on an organization's operations the given one may use: an undo may use twice as
// much as others, so that a wrong decision can be taken back at the limit, too.
func Limit(operation *v1alpha1.TriageOperation, bound int) int {
	if operation.Spec.Undo != "" {
		return 2 * bound
	}
	return bound
}

// Setless reports whether the operation has failed before its set was made: it has decided about nothing, and does not
// count towards MaxOperations.
func Setless(operation *v1alpha1.TriageOperation) bool {
	return operation.Status.CompletedAt != nil && operation.Status.SelectedAt == nil
}
