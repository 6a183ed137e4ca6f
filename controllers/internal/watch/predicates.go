package watch

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
)

// Updates passes over the updates for which the function reports false.
func Updates[O client.Object](matters func(before, after O) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isKind := e.ObjectOld.(O)
		after, isToo := e.ObjectNew.(O)
		return isKind && isToo && matters(before, after)
	}}
}

// SpecOr passes over the updates that leave the spec as it was and for which the function reports false. So a
// controller is not woken by its own status writes, each of which would bring the next look at once: no count would
// ever be held back.
func SpecOr[O client.Object](matters func(before, after O) bool) predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, Updates(matters))
}

// NewSinceStart passes over what existed at the start, when every object is reconciled on its own account.
var NewSinceStart = predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}

// CreatedOrDeleted passes over updates: an object refers to a name, not to what is behind it.
var CreatedOrDeleted = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

// FinalizersChanged reports whether somebody has put a finalizer on, or taken one off.
func FinalizersChanged(before, after client.Object) bool {
	return !slices.Equal(before.GetFinalizers(), after.GetFinalizers())
}

// BeginsToWait reports whether the object has begun to wait for one of those reasons. What it waits for may have come
// while that was being written, too early for anything to wake the object.
func BeginsToWait(before, after []v1alpha1.Condition, reasons ...string) bool {
	is := conditions.ReadyReason(after)
	return slices.Contains(reasons, is) && is != conditions.ReadyReason(before)
}
