package scan

import (
	"maps"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// readingLife is how long a reading of a Lease serves other scans that name it.
const readingLife = minLeaseDuration + heartbeatMargin

// leases holds recent readings of Leases by which an import is alive: tens of thousands of running scans may name the
// same one. The zero value is empty.
type leases struct {
	mu       sync.Mutex
	readings map[types.NamespacedName]reading
	// swept is when outdated readings were last removed.
	swept time.Time
}

// reading holds the fields of a Lease that a heartbeat needs, and the times before and after it was read.
type reading struct {
	lease       *coordinationv1.Lease
	asked, read time.Time
}

// observe evaluates a recent reading of the Lease for a scan that names it, and reports whether the import is alive by
// it. If not, the Lease must be read: it may have been acquired or renewed since.
func (l *leases) observe(name types.NamespacedName, named *v1alpha1.ScanLease, h heartbeat,
	now time.Time) (heartbeat, bool) {
	l.mu.Lock()
	recent, known := l.readings[name]
	l.mu.Unlock()
	if !known || now.Sub(recent.asked) >= readingLife {
		return h, false
	}
	next, p := h.observe(recent.lease, named, recent.asked, recent.read)
	return next, p.dead == nil && now.Before(next.checkAt)
}

// note records a reading, unless a newer one is known: several workers may read the same Lease. At times it removes
// those that are outdated.
func (l *leases) note(name types.NamespacedName, lease *coordinationv1.Lease, asked, read time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readings == nil {
		l.readings = map[types.NamespacedName]reading{}
	}
	if read.Sub(l.swept) >= readingLife {
		l.swept = read
		maps.DeleteFunc(l.readings, func(_ types.NamespacedName, last reading) bool {
			return read.Sub(last.asked) >= readingLife
		})
	}
	if last, known := l.readings[name]; known && last.asked.After(asked) {
		return
	}
	l.readings[name] = reading{&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: lease.ResourceVersion},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: lease.Spec.HolderIdentity, LeaseDurationSeconds: lease.Spec.LeaseDurationSeconds,
		},
	}, asked, read}
}
