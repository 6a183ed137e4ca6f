package scan

import (
	"context"
	"fmt"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

const (
	// minLeaseDuration, that of `kubectl findings import`, applies to a Lease without a duration or with a shorter one. A
	// Lease of a second that is renewed each second would be read every two seconds for each scan that names it, and other
	// organizations would wait.
	minLeaseDuration = 15 * time.Second
	// heartbeatMargin is added to a Lease's duration, so that a check does not come just before a renewal.
	heartbeatMargin = time.Second
)

// liveness is the result of checking an import's heartbeat.
type liveness struct {
	// dead is the verdict on a dead import; nil if the import may be alive.
	dead *conditions.Verdict
	// checkIn is when to check again; 0 for never.
	checkIn time.Duration
}

// heartbeat is a Lease as this process last saw it.
type heartbeat struct {
	scan types.UID
	// version of the Lease, and since when this process knows it by its own clock: clocks of two machines are never
	// compared.
	version string
	since   time.Time
	// checkAt is when to read the Lease again, because findings enqueue their scan far more often.
	checkAt time.Time
}

// lastOf returns the last heartbeat of the scan; a new one if none was seen.
func (r *Reconciler) lastOf(scan *v1alpha1.Scan) heartbeat {
	known, _ := r.heartbeats.Load(client.ObjectKeyFromObject(scan))
	if last, _ := known.(heartbeat); last.scan == scan.UID {
		return last
	}
	return heartbeat{scan: scan.UID}
}

// checkHeartbeat checks whether the import of a running scan is alive. A scan without a Lease is judged by the time
// alone. Durations are measured by the local clock, because that of Base may be set back.
func (r *Reconciler) checkHeartbeat(ctx context.Context, scan *v1alpha1.Scan) (liveness, error) {
	if scan.Spec.Lease == nil || scan.Spec.Outcome != "" || isAbandoned(&scan.Status) {
		r.heartbeats.Delete(client.ObjectKeyFromObject(scan))
		return liveness{}, nil
	}
	last, now := r.lastOf(scan), time.Now()
	if now.Before(last.checkAt) {
		return liveness{checkIn: last.checkAt.Sub(now)}, nil
	}
	name := client.ObjectKey{Namespace: scan.Namespace, Name: scan.Spec.Lease.Name}
	var lease *coordinationv1.Lease
	if kube.IsName(name.Name) { // the name may be any text, and no object can have another
		found := &coordinationv1.Lease{}
		if err := r.Live.Get(ctx, name, found); err == nil {
			lease = found
		} else if !kube.IsNotFound(err) {
			return liveness{}, fmt.Errorf("read the Lease of the import: %w", err)
		}
	}
	next, p := last.observe(lease, scan.Spec.Lease, now, time.Now())
	r.heartbeats.Store(client.ObjectKeyFromObject(scan), next)
	if p.dead == nil {
		return p, nil
	}
	return r.confirm(ctx, scan, p)
}

// confirm withdraws the verdict that an import is dead if the import has recorded its end. It does so before it
// releases its Lease, and the cached scan may be older.
func (r *Reconciler) confirm(ctx context.Context, scan *v1alpha1.Scan, dead liveness) (liveness, error) {
	current := &v1alpha1.Scan{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(scan), current)
	switch {
	case kube.IgnoreNotFound(err) != nil:
		return liveness{}, fmt.Errorf("read the scan whose import counts as dead: %w", err)
	case err != nil || current.UID != scan.UID || current.Spec.Outcome != "":
		return liveness{}, nil // the watch enqueues it
	}
	return dead, nil
}

// observe evaluates a Lease, nil if it does not exist. asked and read are the times before and after reading it.
func (h heartbeat) observe(lease *coordinationv1.Lease, named *v1alpha1.ScanLease, asked,
	read time.Time) (heartbeat, liveness) {
	if verdict := notHeld(lease, named); verdict != nil {
		return h, liveness{dead: verdict}
	}
	seconds := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)
	duration := max(time.Duration(seconds)*time.Second, minLeaseDuration)
	if h.version != lease.ResourceVersion {
		h.version, h.since = lease.ResourceVersion, read
	} else if asked.Sub(h.since) > duration {
		return h, liveness{dead: givenUp(fmt.Sprintf(
			"The import has died: it no longer renews its Lease %s. Run the same import again to finish it.",
			quoted(named.Name)))}
	}
	h.checkAt = h.since.Add(duration + heartbeatMargin)
	return h, liveness{checkIn: h.checkAt.Sub(asked)}
}

// notHeld returns the verdict on an import that no longer holds its Lease, else nil.
func notHeld(lease *coordinationv1.Lease, named *v1alpha1.ScanLease) *conditions.Verdict {
	if lease == nil {
		return givenUp(fmt.Sprintf(
			"The import has died: its Lease %s does not exist. Run the same import again to finish it.", quoted(named.Name)))
	}
	switch holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder {
	case named.Holder:
		return nil
	case "":
		return givenUp(fmt.Sprintf(
			"The import has died: it released its Lease %s without recording an end. Run the same import again to finish it.",
			quoted(named.Name)))
	default:
		return givenUp(fmt.Sprintf(
			"The import has died: %s holds its Lease %s. Run the same import again to finish it.",
			quoted(holder), quoted(named.Name)))
	}
}

// quoted returns the name of a Lease or its holder for a message, shortened because it may be any text.
func quoted(name string) string { return strconv.Quote(conditions.Shortened(name)) }
