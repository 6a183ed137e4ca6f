// Package retention removes objects whose retention period is over: closed findings, finished scans, operations that
// have ended, finished webhook deliveries, reviews with their issues, and the Leases that imports leave behind.
//
// An object is deleted with preconditions on its UID and resource version: an object that was
// reopened or triaged since the decision stays. Objects that still owe webhook deliveries, or that
// other objects depend on for their history, are kept.
package retention

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/emptying"
	"github.com/appsec-dev/findings-operator/controllers/internal/implied"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/apitime"
)

const (
	// DefaultRate is how many objects are removed per second, for all organizations together. The
	// API server could remove about 600; this rate leaves its capacity to other clients.
	DefaultRate = 50
	// defaultInterval is the minimum time between two passes over one organization: objects that
	// become due in between are removed together.
	defaultInterval = time.Minute
	// recheckInterval is when to repeat a pass in which another object held a due object, since no watch reports when it
	// is released.
	recheckInterval = 5 * time.Minute
	// turn is how long one organization occupies a worker at the full rate, and maxChecked how many entries it may check
	// in that time. Then it is the next organization's turn.
	turn       = 2 * time.Second
	maxChecked = 5000
	// handOver is when the organization is requeued after its turn.
	handOver = 10 * time.Millisecond
	// outdatedPause is when it is requeued if it has changed since the cache got it, unless the watch reports it sooner.
	outdatedPause = time.Second
)

// Settings configure the controller.
type Settings struct {
	// Rate is how many objects are removed per second, for all organizations together. Default: 50.
	Rate float32
	// Interval is the minimum time between two passes over one organization. Default: a minute.
	Interval time.Duration
	// Implied must be that of the controller of Findings: a finding that needs no status holds a scan only while it owes a
	// delivery, and gets a status before the deliveries of its creation are removed.
	Implied *implied.Statuses
	// Emptying must be that of the controller of Reviews, which records no counters of a review while it is emptied.
	Emptying *emptying.Reviews
	// Clock provides the current time. Default: one that is not far ahead of the API server's.
	Clock clock.PassiveClock
}

// Reconciler removes the objects of organizations whose retention period is over.
type Reconciler struct {
	reconcile.Base
	interval time.Duration
	implied  *implied.Statuses
	emptying *emptying.Reviews
	agenda   *agenda
	// limiter is shared by all organizations; batch is how many objects it allows in one turn.
	limiter flowcontrol.RateLimiter
	batch   int

	// passes holds the running passes by organization. A pass is only a position: after a restart each starts over with
	// the remaining objects.
	passes sync.Map
	// leases holds the last snapshot of the Leases of imports, by organization.
	leases sync.Map
}

// SetupWithManager adds the controller of retention to the manager.
func (s Settings) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	r := newReconciler(mgr.GetClient(), reconcile.NewRecorder(mgr), s)
	r.Live = mgr.GetAPIReader()
	if err := errors.Join(
		index.Add(ctx, mgr, &v1alpha1.Scan{}, scanSeries, seriesOf),
		index.Add(ctx, mgr, &v1alpha1.Finding{}, owedScans, owedScansOf),
		index.Add(ctx, mgr, &v1alpha1.Finding{}, scanFindings, scanFindingsOf),
	); err != nil {
		return err
	}
	feed := r.agenda.handler(r.interval)
	return ctrl.NewControllerManagedBy(mgr).
		Named("retention").
		For(&v1alpha1.Organization{}, builder.WithPredicates(watch.SpecOr(namespaceChanged))).
		Watches(&v1alpha1.Finding{}, feed).
		Watches(&v1alpha1.Scan{}, feed).
		Watches(&v1alpha1.Review{}, feed).
		Watches(&v1alpha1.TriageOperation{}, feed).
		Watches(&v1alpha1.WebhookDelivery{}, feed).
		WithOptions(options).
		Complete(r)
}

// namespaceChanged reports whether the organization's recorded namespace has changed.
func namespaceChanged(before, after *v1alpha1.Organization) bool {
	return before.Status.Namespace != after.Status.Namespace
}

func newReconciler(c client.Client, recorder events.EventRecorder, settings Settings) *Reconciler {
	settings.Rate = cmp.Or(settings.Rate, DefaultRate)
	settings.Interval = cmp.Or(settings.Interval, defaultInterval)
	settings.Emptying = cmp.Or(settings.Emptying, &emptying.Reviews{})
	if settings.Clock == nil {
		settings.Clock = apitime.Clock{}
	}
	batch := max(1, int(settings.Rate*float32(turn.Seconds())))
	return &Reconciler{
		Base:     reconcile.Base{Client: c, Recorder: recorder, Clock: settings.Clock},
		interval: settings.Interval, implied: settings.Implied, emptying: settings.Emptying,
		agenda: newAgenda(), limiter: flowcontrol.NewTokenBucketRateLimiter(settings.Rate, 1), batch: batch,
	}
}

type scope = reconcile.Scope[*v1alpha1.Organization, *v1alpha1.OrganizationStatus]

func newScope() *scope { return reconcile.NewScope(&v1alpha1.Organization{}) }

// Reconcile removes one batch of an organization's due objects. It requeues at once while more are due, else for when
// the next one is.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	phases := []reconcile.Phase[*scope]{r.retireAll}
	return reconcile.Loop[*scope]{
		Base: r.Base, New: newScope,
		// A removal may wait for good until the organization is empty, and it is in use until then.
		Phases: phases, Removal: phases, Foreign: true,
		Gone: func(organization types.NamespacedName) {
			r.passes.Delete(organization.Name)
			r.leases.Delete(organization.Name)
		},
	}.Run(ctx, req)
}

// retireAll removes Leases and other objects independently, so that failures of one do not block the other.
func (r *Reconciler) retireAll(ctx context.Context, s *scope) error {
	return errors.Join(r.retireDue(ctx, s), r.retireLeases(ctx, s))
}

func (r *Reconciler) retireDue(ctx context.Context, s *scope) error {
	s.LeaveStatus() // another controller writes it
	organization := s.Object
	if organization.Status.Namespace == "" {
		// An organization without a namespace has no objects. The watch reports when it gets one.
		r.passes.Delete(organization.Name)
		return nil
	}
	p := r.under(organization)
	done, err := r.work(ctx, organization, p)
	if err != nil {
		return err
	}
	switch {
	case p.outdated:
		s.RequeueAfter(outdatedPause)
		return nil
	case !done:
		s.RequeueAfter(handOver)
		return nil
	}
	r.passes.Delete(organization.Name)
	r.emptying.End(organization.Status.Namespace)
	r.announce(ctx, organization, p)
	s.RequeueAfter(r.sleep(organization, p))
	return nil
}

// under returns the organization's running pass, or starts one.
func (r *Reconciler) under(organization *v1alpha1.Organization) *pass {
	p, found := r.passes.LoadOrStore(organization.Name, newPass())
	if !found {
		r.agenda.begin(organization.Status.Namespace)
	}
	return p.(*pass)
}

// sleep returns how long until another pass has something to do; 0 to wait for a watch. Entries may have been added
// before the position that this pass has reached, and the request that the watch enqueued for them may have been merged
// with the turns of the pass.
func (r *Reconciler) sleep(organization *v1alpha1.Organization, p *pass) time.Duration {
	var wait time.Duration
	sooner := func(than time.Duration) { wait = reconcile.Sooner(wait, max(than, r.interval)) }
	if p.held {
		sooner(recheckInterval)
	}
	if p.changed || r.agenda.hasMore(organization.Status.Namespace) {
		sooner(r.interval)
	}
	for _, t := range termsOf(organization.Spec.Retention) {
		if next, found := r.agenda.next(place{organization.Status.Namespace, t.shelf}, p.upTo(t.shelf)); found {
			sooner(next.Add(t.keep).Sub(r.Clock.Now()))
		}
	}
	return wait
}
