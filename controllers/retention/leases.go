package retention

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/internal/kube"
)

// leaseIdle is how long a Lease must have been unchanged before it is removed. A held Lease is renewed every few
// seconds, and an import recreates a missing one.
const leaseIdle = time.Hour

// Scanners write the Leases, as many as they like, each with up to 1.5 MB of labels and annotations.
const (
	// leasePage is how many Leases are in memory at once: 60 MB at most.
	leasePage = 40
	// maxLeases is how many Leases of a namespace are read at a time, which bounds a snapshot.
	maxLeases = 10_000
)

// leaseKind is the kind in the metric's label.
const leaseKind = "Lease"

// leasePrefixes are the name prefixes of the Leases of imports and reviews. Other Leases are not
// touched.
var leasePrefixes = []string{"import-", "review-"}

// snapshot holds the Leases of imports as this process saw them at one time: resource versions by UID. A Lease is
// removed only if it was seen unchanged twice. The idle time is measured by this process's clock, because clocks of two
// machines are never compared.
type snapshot struct {
	at       time.Time
	versions map[types.UID]string
	// due holds the Leases that were unchanged since the previous snapshot and have yet to be removed. They are not in
	// versions.
	due []seenLease
}

// seenLease is the part of a Lease that a snapshot keeps, since labels and annotations may be large.
type seenLease struct {
	name    string
	uid     types.UID
	version string
}

// retireLeases removes a batch of the Leases of imports that were seen unchanged twice, and requeues for the next batch
// or, if no more are due, for the next snapshot. Imports leave a Lease behind per series of scans and per pull request.
func (r *Reconciler) retireLeases(ctx context.Context, s *scope) error {
	organization := s.Object
	if organization.Status.Namespace == "" {
		r.leases.Delete(organization.Name)
		return nil
	}
	last, _ := r.leases.Load(organization.Name)
	seen, _ := last.(snapshot)
	if len(seen.due) == 0 {
		if left := seen.at.Add(leaseIdle).Sub(r.Clock.Now()); left > 0 {
			s.RequeueAfter(left)
			return nil
		}
		var err error
		if seen, err = r.listLeases(ctx, organization.Status.Namespace, seen); err != nil {
			return err
		}
	}
	idle := seen.due[:min(r.batch, len(seen.due))]
	for i, lease := range idle {
		if err := r.retireLease(ctx, organization.Status.Namespace, lease); err != nil {
			// The next reconcile continues with the others. This one counts as unseen in the next snapshot.
			seen.due = seen.due[i+1:]
			r.leases.Store(organization.Name, seen)
			return err
		}
	}
	if len(idle) > 0 {
		ctrl.LoggerFrom(ctx).Info("retired", "leases", len(idle))
	}
	seen.due = seen.due[len(idle):]
	r.leases.Store(organization.Name, seen)
	if len(seen.due) > 0 {
		s.RequeueAfter(r.interval) // not at once: each reconcile also begins a pass over the other kinds
		return nil
	}
	s.RequeueAfter(leaseIdle)
	return nil
}

// listLeases reads the namespace's Leases. Those of imports that are unchanged since the last snapshot are due. It
// reads only the first maxLeases by name; the others follow once enough of these are gone.
func (r *Reconciler) listLeases(ctx context.Context, namespace string, last snapshot) (snapshot, error) {
	current, read := snapshot{versions: map[types.UID]string{}}, 0
	err := kube.Pages(func(token string) (next string, err error) {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("LeaseList"))
		err = r.Live.List(ctx, page, client.InNamespace(namespace), client.Limit(leasePage), client.Continue(token))
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			current.note(&page.Items[i], last)
		}
		if read += len(page.Items); read >= maxLeases {
			return "", nil
		}
		return page.Continue, nil
	})
	if err != nil {
		return snapshot{}, fmt.Errorf("list the Leases of imports: %w", err)
	}
	current.at = r.Clock.Now() // the next snapshot reads no Lease less than leaseIdle after this one
	return current, nil
}

// note records a Lease. It is due if it belongs to an import and is unchanged since the last snapshot.
func (s *snapshot) note(lease *metav1.PartialObjectMetadata, last snapshot) {
	switch {
	case !ofImport(lease.Name):
	case last.versions[lease.UID] == lease.ResourceVersion:
		s.due = append(s.due, seenLease{lease.Name, lease.UID, lease.ResourceVersion})
	default:
		s.versions[lease.UID] = lease.ResourceVersion
	}
}

// retireLease removes the Lease if it is unchanged since it was seen, because an import may be acquiring it.
func (r *Reconciler) retireLease(ctx context.Context, namespace string, seen seenLease) error {
	if err := r.limiter.Wait(ctx); err != nil {
		return fmt.Errorf("wait for a turn to remove Lease %s: %w", seen.name, err)
	}
	lease := kube.MetadataOf(coordinationv1.SchemeGroupVersion.WithKind(leaseKind))
	lease.Namespace, lease.Name = namespace, seen.name
	lease.UID, lease.ResourceVersion = seen.uid, seen.version
	outcome, err := r.remove(ctx, lease, leaseKind)
	if outcome == fateRefused {
		// It counts as unseen in the next snapshot, so it is tried again two snapshots later.
		ctrl.LoggerFrom(ctx).Error(err, "the removal of a Lease was refused, and is tried again later")
		return nil
	}
	return err
}

func ofImport(name string) bool {
	return slices.ContainsFunc(leasePrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
