// Package lastwrite computes when a resource's spec was last written: the `updated_at` of REST.
//
// The API server records no such time. The closest is the time of each field manager's last write in managedFields,
// which has three gaps: removing a field changes no time, an object without owned fields has none, and a full replace
// can carry any time that the client chooses. If managedFields do not show the time, the controllers use their clock
// and record its time in status; until then the REST facade shows what it knows.
package lastwrite

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// How far ahead of the local clock a trusted time in managedFields may be. Unless forged, it comes from the API server,
// whose clock may be ahead.
//
// The facade trusts less than the controllers, so that the controllers accept every time that it shows, unless its
// clock is ahead of theirs by more than the difference.
const (
	controllerTolerance = 5 * time.Minute
	facadeTolerance     = 2 * time.Second
)

// sameMoment is how long after a write of the facade a change without a time of its own counts as made in the same
// second. Usually it is a second write of the same client, which the facade has answered with that second.
const sameMoment = 2 * time.Second

// Observed is what a resource's status records about its last write.
type Observed struct {
	// Generation for which UpdatedAt was recorded; 0 before the first reconcile.
	Generation int64
	// UpdatedAt is nil before the first reconcile.
	UpdatedAt *v1alpha1.Time
}

// Covers reports whether nothing has changed since the last reconcile: then all readers
// use UpdatedAt.
func (o Observed) Covers(object metav1.Object) bool {
	return o.UpdatedAt != nil && o.Generation >= object.GetGeneration()
}

// UpdatedAt is the time that a controller records, to the second, in UTC.
//
// If nothing has changed since the last reconcile, it is the observed time. After a change it is the newest trusted
// time at which anybody but the controllers wrote something other than status, if that is later than the observed time;
// else it is now, or the observed time if that was a write of the facade, sameMoment ago at most. It is never before
// the observed time or the creation. An object that has not changed since its creation was last written then.
func UpdatedAt(object metav1.Object, observed Observed, now time.Time) v1alpha1.Time {
	at, exact := provenWrite(object, observed, now.Add(controllerTolerance))
	if !exact && now.After(at) && (now.Sub(at) > sameMoment || !writtenByFacade(object, at)) {
		at = now
	}
	return v1alpha1.NewTime(at)
}

// Shown returns the time that the REST facade shows for an object, to the second, in UTC, and whether
// it is recorded in status. A recorded time replaces whatever was shown before, so that all replicas
// and kubectl agree. Before that it is the time that the controllers will record, as far as the
// object shows it; if the caller has already shown a later time, it keeps showing that one. Other times
// are shown once the controllers have recorded them.
//
// now is never shown. It only bounds which times are trusted.
func Shown(object metav1.Object, observed Observed, now time.Time) (at time.Time, recorded bool) {
	at, _ = provenWrite(object, observed, now.Add(facadeTolerance))
	return second(at), observed.Covers(object)
}

// provenWrite returns the last write that the object itself proves, and whether that is exact; otherwise the last write
// was at that time or later. Times after limit are not trusted.
func provenWrite(object metav1.Object, observed Observed, limit time.Time) (at time.Time, exact bool) {
	if observed.Covers(object) {
		return observed.UpdatedAt.Time, true
	}
	at = object.GetCreationTimestamp().Time
	if observed.UpdatedAt == nil && object.GetGeneration() <= 1 {
		return at, true
	}
	if observed.UpdatedAt != nil && observed.UpdatedAt.After(at) {
		at = observed.UpdatedAt.Time
	}
	written := newestWrite(object, limit)
	// The write that the status was recorded for has its time in managedFields too, so only a later
	// time counts. Before the first status, the time of the creation counts too.
	if written.After(at) || observed.UpdatedAt == nil && written.Equal(at) {
		return written, true
	}
	return at, false
}

// writtenByFacade reports whether the facade's last write was in that second.
func writtenByFacade(object metav1.Object, at time.Time) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == v1alpha1.APIFieldManager && entry.Subresource == "" &&
			entry.Time != nil && entry.Time.Time.Equal(at)
	})
}

// OfControllers returns when the controllers last wrote something other than status; the zero time if they never did.
func OfControllers(object metav1.Object) time.Time {
	newest := time.Time{}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == v1alpha1.ControllerFieldManager && entry.Subresource == "" && entry.Time != nil &&
			entry.Time.After(newest) {
			newest = entry.Time.Time
		}
	}
	return newest
}

func newestWrite(object metav1.Object, limit time.Time) time.Time {
	newest := time.Time{}
	for _, entry := range object.GetManagedFields() {
		if entry.Time == nil || entry.Subresource != "" || entry.Manager == v1alpha1.ControllerFieldManager {
			continue
		}
		if entry.Time.After(newest) && !entry.Time.After(limit) {
			newest = entry.Time.Time
		}
	}
	return newest
}

func second(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
