// Package scan records how far a scan is, and gives up on one whose importer has died.
package scan

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
)

// Reconciler reconciles Scans.
type Reconciler struct {
	client   client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
}

// SetupWithManager adds the controller of Scans to the manager.
func SetupWithManager(_ context.Context, mgr ctrl.Manager, options controller.Options) error {
	r := &Reconciler{
		client:   mgr.GetClient(),
		recorder: mgr.GetEventRecorder(v1alpha1.ControllerFieldManager),
		clock:    clock.RealClock{},
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Scan{}).
		WithOptions(options).
		Complete(r)
}

// Reconcile brings the status of one scan up to its spec and the time, with at most one write.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	scan := &v1alpha1.Scan{}
	if err := r.client.Get(ctx, req.NamespacedName, scan); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !scan.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	before := *scan.Status.DeepCopy()
	p := progressOf(scan, r.clock.Now())
	observe(scan, p, r.clock.Now())

	written, err := patch.Status(ctx, r.client, scan, before, scan.Status)
	if written && before.Phase != scan.Status.Phase {
		r.announce(scan, p)
	}
	// Nothing but the clock wakes a scan whose importer has died.
	return patch.Outcome(ctrl.Result{RequeueAfter: p.changesIn}, err)
}

func observe(scan *v1alpha1.Scan, p progress, now time.Time) {
	// First: it compares with the phase and the conditions so far.
	scan.Status.Transitions = transitionsOf(scan, p, now)
	scan.Status.EmittedSeq = lastSeq(&scan.Status) // no deliveries are made yet, so none are owed
	scan.Status.ObservedGeneration = scan.Generation
	scan.Status.Phase = p.phase
	conditions.Set(&scan.Status.Conditions, p.verdict, scan.Generation, now)
}
