// Package scan records how far a scan is, gives up on one whose importer has died, and makes
// webhook deliveries of how it ended.
package scan

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
)

// Reconciler reconciles Scans.
type Reconciler struct {
	client   client.Client
	ledger   *ledger.Ledger
	pager    *ledger.Pager
	recorder events.EventRecorder
	clock    clock.PassiveClock
}

// SetupWithManager adds the controller of Scans to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	deliveries, err := ledger.New(ctx, mgr, kind)
	if err != nil {
		return err
	}
	pager, err := ledger.NewPager(ctx, mgr)
	if err != nil {
		return err
	}
	r := &Reconciler{
		client:   mgr.GetClient(),
		ledger:   deliveries,
		pager:    pager,
		recorder: mgr.GetEventRecorder(v1alpha1.ControllerFieldManager),
		clock:    clock.RealClock{},
	}
	return ctrl.NewControllerManagedBy(mgr).
		// Its own status writes say nothing new.
		For(&v1alpha1.Scan{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Finding{}, pager.Findings()).
		Watches(&v1alpha1.WebhookEndpoint{}, deliveries.Endpoints()).
		Watches(&v1alpha1.WebhookEndpoint{}, pager.Endpoints()).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope struct {
	scan *v1alpha1.Scan
	// before is the status as it was read; scan.Status becomes what is to be written.
	before v1alpha1.ScanStatus
	now    time.Time
	// progress is how far the scan is now.
	progress progress
}

// Reconcile brings the status of one scan up to its spec and the time, and makes the deliveries
// that are owed for its end. The status is written once, and once more after deliveries were made.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	scan := &v1alpha1.Scan{}
	if err := r.client.Get(ctx, req.NamespacedName, scan); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !scan.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	s := &scope{scan: scan, before: *scan.Status.DeepCopy(), now: r.clock.Now()}
	return patch.Outcome(r.run(ctx, s))
}

func (r *Reconciler) run(ctx context.Context, s *scope) (ctrl.Result, error) {
	s.progress = progressOf(s.scan, s.now)
	was := s.before.Phase
	observe(s.scan, s.progress, s.now)
	again, err := r.ledger.Settle(ctx, s.scan, func(ctx context.Context) (bool, error) { return r.write(ctx, s) })
	if err != nil {
		return ctrl.Result{}, err
	}
	if s.progress.changesIn > 0 {
		// Nothing but the clock wakes a scan whose importer has died.
		return ctrl.Result{RequeueAfter: s.progress.changesIn}, nil
	}
	pages, err := r.makePages(ctx, s.scan, was)
	return soonest(again, pages), err
}

// soonest is the look that comes first of two.
func soonest(a, b ctrl.Result) ctrl.Result {
	if a.RequeueAfter == 0 || b.RequeueAfter > 0 && b.RequeueAfter < a.RequeueAfter {
		return b
	}
	return a
}

// write stores the status where anything in it differs, and tells people of the scan's end.
func (r *Reconciler) write(ctx context.Context, s *scope) (bool, error) {
	written, err := patch.Status(ctx, r.client, s.scan, s.before, s.scan.Status)
	if written {
		if s.before.Phase != s.scan.Status.Phase {
			r.announce(s.scan, s.progress)
		}
		s.before = *s.scan.Status.DeepCopy()
	}
	return written, err
}

func observe(scan *v1alpha1.Scan, p progress, now time.Time) {
	// First: it compares with the phase and the conditions so far.
	scan.Status.Transitions = transitionsOf(scan, p, now)
	scan.Status.ObservedGeneration = scan.Generation
	scan.Status.Phase = p.phase
	conditions.Set(&scan.Status.Conditions, p.verdict, scan.Generation, now)
}
