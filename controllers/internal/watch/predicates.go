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

// SpecChanged passes over the updates that leave the spec as it was. So a controller's own status writes do not enqueue
// the object again: that would defeat the delay of counts. If an object was deleted and created again while a watch was
// interrupted, that is one update to another UID, often with the same generation.
var SpecChanged = predicate.Or(predicate.GenerationChangedPredicate{},
	Updates(func(before, after client.Object) bool { return before.GetUID() != after.GetUID() }))

// SpecOr passes over the updates that SpecChanged passes over and for which the function reports false.
func SpecOr[O client.Object](matters func(before, after O) bool) predicate.Predicate {
	return predicate.Or(SpecChanged, Updates(matters))
}

// NewSinceStart passes over objects that existed at the start, when every object is reconciled anyway.
var NewSinceStart = predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}

// CreatedOrDeleted passes over updates: for a reference by name only the existence of the object
// matters.
var CreatedOrDeleted = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

// FinalizersChanged reports whether a finalizer was added or removed.
func FinalizersChanged(before, after client.Object) bool {
	return !slices.Equal(before.GetFinalizers(), after.GetFinalizers())
}

// BeginsToWait reports whether the object has begun to wait for one of those reasons. The object it waits for may
// have been created while that status was being written, too early for the watch to enqueue this one.
func BeginsToWait(before, after []v1alpha1.Condition, reasons ...string) bool {
	is := conditions.ReadyReason(after)
	return slices.Contains(reasons, is) && is != conditions.ReadyReason(before)
}
