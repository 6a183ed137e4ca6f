// Package retention removes what an organization keeps no longer: closed findings, finished
// scans, operations that have ended, finished webhook deliveries, and the Leases that imports leave behind.
//
// An object goes only as it was when that was decided, by its UID and resource version: one that
// was reopened or triaged since stays. Nothing goes that has still something to tell, nor what
// others know the past by.
package retention

import (
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
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

const (
	// DefaultRate is how many objects are removed a second, for all organizations together. The
	// API server removes some 600 in a row; this leaves it to those who wait for answers.
	DefaultRate = 50
	// defaultInterval is the least time between two passes over one organization: what becomes
	// due in the meantime goes together.
	defaultInterval = time.Minute
	// lookAgain is when a pass is repeated that found something due which another object holds:
	// no watch says when that one lets go.
	lookAgain = 5 * time.Minute
	// turn is for how long one organization has a worker at the full rate, and mostLooked how
	// many entries it may look at meanwhile; then another one has its turn.
	turn       = 2 * time.Second
	mostLooked = 5000
	// handOver is how soon the organization comes back after its turn.
	handOver = 10 * time.Millisecond
)

// Settings are what the operator decides on.
type Settings struct {
	// Rate is how many objects are removed a second, for all organizations together. Default: 50.
	Rate float32
	// Interval is the least time between two passes over one organization. Default: a minute.
	Interval time.Duration
	// Clock says what is due. Default: the real one.
	Clock clock.PassiveClock
}

// Reconciler retires what the organizations keep no longer.
type Reconciler struct {
	reconcile.Base
	interval time.Duration
	agenda   *agenda
	// limiter is shared by all organizations, batch what it lets through in one's turn.
	limiter flowcontrol.RateLimiter
	batch   int

	mu sync.Mutex
	// passes that are under way, by organization. They hold nothing but how far they are: after a
	// restart each begins anew, and finds what is left.
	passes map[string]*pass
	leases leases
}

// SetupWithManager adds the controller of retention to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options, settings Settings) error {
	r := newReconciler(mgr.GetClient(), mgr.GetEventRecorder(v1alpha1.ControllerFieldManager), settings)
	r.Live = mgr.GetAPIReader()
	if err := errors.Join(
		index.Add(ctx, mgr, &v1alpha1.Scan{}, scanSeries, seriesOf),
		index.Add(ctx, mgr, &v1alpha1.Finding{}, owedScans, owedScansOf),
	); err != nil {
		return err
	}
	feed := r.agenda.handler(r.interval)
	return ctrl.NewControllerManagedBy(mgr).
		Named("retention").
		For(&v1alpha1.Organization{}, builder.WithPredicates(watch.SpecOr(namespaceChanged))).
		Watches(&v1alpha1.Finding{}, feed).
		Watches(&v1alpha1.Scan{}, feed).
		Watches(&v1alpha1.TriageOperation{}, feed).
		Watches(&v1alpha1.WebhookDelivery{}, feed).
		WithOptions(options).
		Complete(r)
}

func newReconciler(c client.Client, recorder events.EventRecorder, settings Settings) *Reconciler {
	if settings.Rate == 0 {
		settings.Rate = DefaultRate
	}
	if settings.Interval == 0 {
		settings.Interval = defaultInterval
	}
	if settings.Clock == nil {
		settings.Clock = clock.RealClock{}
	}
	batch := max(1, int(settings.Rate*float32(turn.Seconds())))
	return &Reconciler{
		Base: reconcile.Base{Client: c, Recorder: recorder, Clock: settings.Clock}, interval: settings.Interval,
		agenda: newAgenda(), limiter: flowcontrol.NewTokenBucketRateLimiter(settings.Rate, 1), batch: batch,
		passes: map[string]*pass{}, leases: leases{seen: map[string]sighting{}},
	}
}

type scope = reconcile.Scope[*v1alpha1.Organization, *v1alpha1.OrganizationStatus]

func newScope() *scope { return reconcile.NewScope(&v1alpha1.Organization{}) }

// Reconcile removes a batch of what is due of one organization, and comes back: at once while
// more is due, else when the next is.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcile.Loop[*scope]{
		Base: r.Base, New: newScope,
		Phases: []reconcile.Phase[*scope]{r.retireDue, r.retireLeases},
		Gone: func(organization types.NamespacedName) {
			r.drop(organization.Name)
			r.leases.drop(organization.Name)
		},
	}.Run(ctx, req)
}

func (r *Reconciler) retireDue(ctx context.Context, s *scope) error {
	s.LeaveStatus() // it is another controller's
	organization := s.Object
	if organization.Status.Namespace == "" {
		// Without its namespace there is nothing of its own; the watch reports when it has one.
		r.drop(organization.Name)
		return nil
	}
	p := r.under(organization.Name)
	done, err := r.work(ctx, organization, p)
	if err != nil {
		return err
	}
	if !done {
		s.RequeueAfter(handOver)
		return nil
	}
	r.drop(organization.Name)
	r.announce(ctx, organization, p)
	s.RequeueAfter(r.sleep(organization, p))
	return nil
}

// under returns the organization's pass, a new one where none is under way.
func (r *Reconciler) under(organization string) *pass {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.passes[organization]
	if p == nil {
		p = newPass()
		r.passes[organization] = p
	}
	return p
}

func (r *Reconciler) drop(organization string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.passes, organization)
}

// sleep is how long until a pass has something to do again; 0: until a watch brings it. What was
// added behind what the pass has reached, the watch has brought.
func (r *Reconciler) sleep(organization *v1alpha1.Organization, p *pass) time.Duration {
	var wait time.Duration
	sooner := func(than time.Duration) {
		if than = max(than, r.interval); wait == 0 || than < wait {
			wait = than
		}
	}
	if p.held {
		sooner(lookAgain)
	}
	if p.changed {
		sooner(r.interval)
	}
	for _, t := range termsOf(organization.Spec.Retention) {
		if next, found := r.agenda.next(place{organization.Status.Namespace, t.shelf}, p.upTo(t.shelf)); found {
			sooner(next.Add(t.keep).Sub(r.Clock.Now()))
		}
	}
	return wait
}
