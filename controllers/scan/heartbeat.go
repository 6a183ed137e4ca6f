package scan

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
)

const (
	// defaultLeaseDuration is that of a Lease that names none.
	defaultLeaseDuration = 15 * time.Second
	// heartbeatMargin is added to a Lease's duration: a look must not come just before a renewal.
	heartbeatMargin = time.Second
)

// pulse is what the heartbeat of an import tells.
type pulse struct {
	// dead is the verdict that the import is; nil: it is not known to be.
	dead *conditions.Verdict
	// lookIn is when to look again; 0: not.
	lookIn time.Duration
}

// heartbeat is a Lease as this process has last seen it.
type heartbeat struct {
	scan types.UID
	// version of the Lease, and since when it is known, by this process's clock: clocks of two machines
	// are not compared.
	version string
	since   time.Time
	// lookAt is when the Lease is to be read again. Findings wake their scan far more often.
	lookAt time.Time
}

// heartbeats are those of the scans that run. After a restart each is new: no import is judged by what this
// process has not seen.
type heartbeats struct {
	mu sync.Mutex
	of map[types.NamespacedName]heartbeat
}

func newHeartbeats() *heartbeats {
	return &heartbeats{of: map[types.NamespacedName]heartbeat{}}
}

// last heartbeat of the scan; the zero value where none was seen.
func (h *heartbeats) last(scan *v1alpha1.Scan) heartbeat {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := h.of[client.ObjectKeyFromObject(scan)]; last.scan == scan.UID {
		return last
	}
	return heartbeat{scan: scan.UID}
}

func (h *heartbeats) keep(scan *v1alpha1.Scan, next heartbeat) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of[client.ObjectKeyFromObject(scan)] = next
}

func (h *heartbeats) forget(name types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.of, name)
}

// listen tells whether the import of a scan that runs is alive. A scan without a Lease has the clock alone.
func (r *Reconciler) listen(ctx context.Context, scan *v1alpha1.Scan, now time.Time) (pulse, error) {
	if scan.Spec.Lease == nil || scan.Spec.Outcome != "" || isAbandoned(&scan.Status) {
		r.heartbeats.forget(client.ObjectKeyFromObject(scan))
		return pulse{}, nil
	}
	last := r.heartbeats.last(scan)
	if now.Before(last.lookAt) {
		return pulse{lookIn: last.lookAt.Sub(now)}, nil
	}
	lease := &coordinationv1.Lease{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: scan.Namespace, Name: scan.Spec.Lease.Name}, lease)
	if apierrors.IsNotFound(err) {
		lease = nil
	} else if err != nil {
		return pulse{}, fmt.Errorf("read the Lease of the import: %w", err)
	}
	next, p := last.hear(lease, scan.Spec.Lease, now, r.Clock.Now())
	r.heartbeats.keep(scan, next)
	if p.dead == nil {
		return p, nil
	}
	return r.confirm(ctx, scan, p)
}

// confirm takes back that an import is dead where it has recorded its end: it does so before it lets go of its
// Lease, and the scan in the cache may be older than that.
func (r *Reconciler) confirm(ctx context.Context, scan *v1alpha1.Scan, dead pulse) (pulse, error) {
	now := &v1alpha1.Scan{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(scan), now)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return pulse{}, fmt.Errorf("read the scan whose import counts as dead: %w", err)
	case err != nil || now.UID != scan.UID || now.Spec.Outcome != "":
		return pulse{}, nil // its watch wakes it
	}
	return dead, nil
}

// hear concludes from a Lease, nil where it does not exist, that was asked for and read at those times.
func (h heartbeat) hear(lease *coordinationv1.Lease, named *v1alpha1.ScanLease, asked,
	read time.Time) (heartbeat, pulse) {
	if verdict := notHeld(lease, named); verdict != nil {
		return h, pulse{dead: verdict}
	}
	duration := defaultLeaseDuration
	if seconds := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0); seconds > 0 {
		duration = time.Duration(seconds) * time.Second
	}
	if h.version != lease.ResourceVersion {
		h.version, h.since = lease.ResourceVersion, read
	} else if asked.Sub(h.since) > duration {
		return h, pulse{dead: givenUp(fmt.Sprintf(
			"The import has died: it no longer renews its Lease %q. The same import again finishes the work.", named.Name))}
	}
	h.lookAt = h.since.Add(duration + heartbeatMargin)
	return h, pulse{lookIn: h.lookAt.Sub(asked)}
}

// notHeld is the verdict on an import whose Lease is no longer its own, or nil.
func notHeld(lease *coordinationv1.Lease, named *v1alpha1.ScanLease) *conditions.Verdict {
	if lease == nil {
		return givenUp(fmt.Sprintf(
			"The import has died: its Lease %q does not exist. The same import again finishes the work.", named.Name))
	}
	switch holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder {
	case named.Holder:
		return nil
	case "":
		return givenUp(fmt.Sprintf(
			"The import has died: it let go of its Lease %q and recorded no end. The same import again finishes the work.", named.Name))
	default:
		return givenUp(fmt.Sprintf(
			"The import has died: %q holds its Lease %q. The same import again finishes the work.", holder, named.Name))
	}
}
