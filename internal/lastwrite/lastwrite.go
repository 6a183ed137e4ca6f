// Package lastwrite says when a resource's spec was last written: the `updated_at` of REST.
//
// The API server keeps no such time. The nearest thing is the time in managedFields of the
// last write by each field manager, which has two holes: a field that is removed moves no
// time, and a full replace may carry any time the client likes. The rule below closes both.
package lastwrite

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Observed is what is known of a resource's last write from its status.
type Observed struct {
	// Generation that UpdatedAt is of; 0 before the first reconcile.
	Generation int64
	// UpdatedAt is nil before the first reconcile.
	UpdatedAt *v1alpha1.Time
}

// UpdatedAt is when the spec was last written, to the second, in UTC.
//
// While nothing has changed since the last reconcile it is the time observed then. After a
// change it is the newest time at which anybody but the controllers wrote something other
// than status, if that is later than the time observed and not later than now; else it is
// now. It never goes back.
//
// Controllers and the REST facade call the same function, so that what the facade answers
// before a reconcile is what the reconcile will record, as long as their clocks agree.
func UpdatedAt(object metav1.Object, observed Observed, now time.Time) v1alpha1.Time {
	if observed.UpdatedAt != nil && observed.Generation >= object.GetGeneration() {
		return second(observed.UpdatedAt.Time)
	}
	var before time.Time
	if observed.UpdatedAt != nil {
		before = observed.UpdatedAt.Time
	}
	written := newestWrite(object)
	if !written.After(before) || written.After(now) {
		written = now
	}
	if written.Before(before) {
		written = before
	}
	return second(written)
}

func newestWrite(object metav1.Object) time.Time {
	newest := time.Time{}
	for _, entry := range object.GetManagedFields() {
		if entry.Time == nil || entry.Subresource != "" || entry.Manager == v1alpha1.ControllerFieldManager {
			continue
		}
		if entry.Time.After(newest) {
			newest = entry.Time.Time
		}
	}
	return newest
}

func second(t time.Time) v1alpha1.Time { return v1alpha1.NewTime(t.UTC().Truncate(time.Second)) }
