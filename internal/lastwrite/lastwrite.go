// Package lastwrite says when a resource's spec was last written: the `updated_at` of REST.
//
// The API server keeps no such time. The nearest thing is the time in managedFields of the
// last write by each field manager, which has three holes: a field that is removed moves no
// time, an object of which nobody owns a field has none, and a full replace may carry any time
// the client likes. What managedFields do not tell, the controllers take from their clock and
// record in status; the REST facade shows what it knows until they have.
package lastwrite

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// How far ahead of one's own clock a time in managedFields may be and still be believed. The
// API server made it, unless it is forged, and its clock may be ahead.
//
// The facade believes less than the controllers: what it shows they then record, as long as its
// clock is not ahead of theirs by more than the difference.
const (
	controllersBelieve = 5 * time.Minute
	facadeBelieves     = 2 * time.Second
)

// Observed is what is known of a resource's last write from its status.
type Observed struct {
	// Generation that UpdatedAt is of; 0 before the first reconcile.
	Generation int64
	// UpdatedAt is nil before the first reconcile.
	UpdatedAt *v1alpha1.Time
}

// Covers reports whether nothing has changed since the last reconcile: then UpdatedAt is the
// time, for everybody.
func (o Observed) Covers(object metav1.Object) bool {
	return o.UpdatedAt != nil && o.Generation >= object.GetGeneration()
}

// UpdatedAt is the time that a controller records, to the second, in UTC.
//
// While nothing has changed since the last reconcile it is the time observed then. After a
// change it is the newest believable time at which anybody but the controllers wrote something
// other than status, if that is later than the time observed; else it is now. It is never
// before the time observed nor before the creation. An object that has not changed since its
// creation was last written then.
func UpdatedAt(object metav1.Object, observed Observed, now time.Time) v1alpha1.Time {
	at, told := tell(object, observed, now.Add(controllersBelieve))
	if !told && now.After(at) {
		at = now
	}
	return v1alpha1.NewTime(second(at))
}

// Shown is the time that the REST facade shows for an object, to the second, in UTC, and whether
// it is recorded in status. A recorded time holds whatever was shown before, so that all replicas
// and kubectl agree. Until then it is the time that the controllers will record, as far as the
// object tells it, and the caller goes on showing the time that it has shown for the object so
// far where that is later: what the object does not tell waits for the controllers.
//
// now is never what is shown. It only tells which times are not believed.
func Shown(object metav1.Object, observed Observed, now time.Time) (at time.Time, recorded bool) {
	at, _ = tell(object, observed, now.Add(facadeBelieves))
	return second(at), observed.Covers(object)
}

// tell returns what the object itself says of its last write, and whether that is all: if not,
// the last write was at that time or later. Times after limit are not believed.
func tell(object metav1.Object, observed Observed, limit time.Time) (at time.Time, told bool) {
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
	// The write that the status is of has its time in managedFields too; that of the creation
	// counts as any other.
	if written.After(at) || observed.UpdatedAt == nil && written.Equal(at) {
		return written, true
	}
	return at, false
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
