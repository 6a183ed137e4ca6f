package watch

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
)

// Updates ignores the updates for which the function returns false.
func Updates[O client.Object](matters func(before, after O) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isKind := e.ObjectOld.(O)
		after, isToo := e.ObjectNew.(O)
		return isKind && isToo && matters(before, after)
	}}
}

// SpecChanged ignores updates that do not change the spec, so that a controller's own status writes do not enqueue the
// object again, which would defeat the delay of counts. It includes updates to another UID, often with the same
// generation.
var SpecChanged = predicate.Or(predicate.GenerationChangedPredicate{}, CreatedOrDeleted)

// SpecOr ignores updates that SpecChanged ignores and for which the function returns false.
func SpecOr[O client.Object](matters func(before, after O) bool) predicate.Predicate {
	return predicate.Or(SpecChanged, Updates(matters))
}

// NewSinceStart ignores objects that existed at startup, when every object is reconciled anyway.
var NewSinceStart = predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}

// CreatedOrDeleted ignores updates, because a reference by name depends only on whether the object exists. It includes
// updates to another UID: the object was deleted and created again while a watch was interrupted.
var CreatedOrDeleted = Updates(func(before, after client.Object) bool { return before.GetUID() != after.GetUID() })

// FinalizersChanged reports whether a finalizer was added or removed.
func FinalizersChanged(before, after client.Object) bool {
	return !slices.Equal(before.GetFinalizers(), after.GetFinalizers())
}

// BeginsToWait reports whether the object has begun to wait for one of those reasons. The awaited object may have been
// created while that status was being written, too early for the watch to enqueue this one.
func BeginsToWait(before, after []v1alpha1.Condition, reasons ...string) bool {
	is := conditions.ReadyReason(after)
	return slices.Contains(reasons, is) && is != conditions.ReadyReason(before)
}
