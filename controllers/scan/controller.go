// Package scan records the progress of scans and when the statuses of their findings are up to date, marks a scan as
// abandoned when its importer has died, and makes webhook deliveries of its end.
package scan

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/implied"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

// Reconciler reconciles Scans.
type Reconciler struct {
	reconcile.Base
	ledger *ledger.Ledger
	pager  *ledger.Pager
	// heartbeats holds the last heartbeat of each running scan, by name. It is empty after a restart: an import is only
	// judged by heartbeats that this process has seen.
	heartbeats sync.Map
}

// Settings of the controller of Scans.
type Settings struct {
	// Implied must be that of the controller of Findings: scans do not wait for findings that need no status.
	Implied *implied.Statuses
}

// SetupWithManager adds the controller of Scans to the manager.
func (s Settings) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	deliveries, err := ledger.New(ctx, mgr, ledger.Scan)
	if err != nil {
		return err
	}
	pager, err := ledger.NewScanPager(ctx, mgr)
	if err != nil {
		return err
	}
	pager.Implied = s.Implied
	r := &Reconciler{
		Base:   reconcile.NewBase(mgr),
		ledger: deliveries,
		pager:  pager,
	}
	return ctrl.NewControllerManagedBy(mgr).
		// Ignore our own status writes.
		For(&v1alpha1.Scan{}, builder.WithPredicates(watch.SpecChanged)).
		Watches(&v1alpha1.Finding{}, pager.Findings()).
		Watches(&v1alpha1.WebhookEndpoint{}, deliveries.Endpoints()).
		Watches(&v1alpha1.WebhookEndpoint{}, pager.Endpoints()).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope = reconcile.Scope[*v1alpha1.Scan, *v1alpha1.ScanStatus]

func newScope() *scope { return reconcile.NewScope(&v1alpha1.Scan{}) }

// Reconcile updates the status of one scan, and makes the deliveries that are owed for its end and for its changes to
// findings.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcile.Loop[*scope]{
		Base: r.Base, New: newScope, Ledger: r.ledger,
		// The pages come last, because a quota may refuse them, and an error ends the phases.
		Phases: []reconcile.Phase[*scope]{r.observe, r.settle, r.makePages},
		Stored: r.announce,
		Gone:   func(name types.NamespacedName) { r.heartbeats.Delete(name) },
	}.Run(ctx, req)
}

// observe records the progress of the scan. An import whose heartbeat cannot be read counts as alive.
func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	health, err := r.checkHeartbeat(ctx, s.Object)
	p := progressOf(s.Object, health, s.Now)
	observe(s.Object, p, s.Now)
	// No event enqueues a scan whose importer has died.
	s.RequeueAfter(p.changesIn)
	return err
}

func observe(scan *v1alpha1.Scan, p progress, now time.Time) {
	// Do this first, because it compares with the previous phase and conditions.
	scan.Status.Transitions = transitionsOf(scan, p, now)
	scan.Status.ObservedGeneration = scan.Generation
	scan.Status.Phase = p.phase
	scan.Status.Progress = progressText(scan.Spec.Progress)
	conditions.Set(&scan.Status.Conditions, p.verdict, scan.Generation, now)
}
