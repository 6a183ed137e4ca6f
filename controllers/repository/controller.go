// Package repository records what follows from a repository's spec and from what belongs to
// it, and removes what belongs to it when it goes.
package repository

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/controllers/internal/phases"
	"github.com/appsec-dev/findings-operator/controllers/internal/removal"
	"github.com/appsec-dev/findings-operator/controllers/internal/tally"
)

// countDelay is how long changes of findings and projects are gathered before the counts are written.
const countDelay = time.Second

// Reconciler reconciles Repositories.
type Reconciler struct {
	client   client.Client
	remover  removal.Remover
	recorder events.EventRecorder
	clock    clock.PassiveClock
	// findings, projects and reviews by repository.
	findings *tally.Tally
	projects *tally.Tally
	reviews  *tally.Tally
}

// SetupWithManager adds the controller of Repositories to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	r := &Reconciler{
		client:   mgr.GetClient(),
		remover:  removal.Remover{Client: mgr.GetClient(), Reader: mgr.GetAPIReader()},
		recorder: mgr.GetEventRecorder(v1alpha1.ControllerFieldManager),
		clock:    clock.RealClock{},
		findings: tally.New(everyFinding),
		projects: tally.New(everyProject),
		reviews:  tally.New(everyReview),
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Scan{}, repositoryField, repositoryOfScan); err != nil {
		return fmt.Errorf("index scans by repository: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Repository{}, builder.WithPredicates(worthReconciling)).
		Watches(&v1alpha1.Finding{}, r.findings.Handler(countDelay)).
		Watches(&v1alpha1.Scan{}, handler.EnqueueRequestsFromMapFunc(scanOwner)).
		Watches(&v1alpha1.Project{}, r.projects.Handler(countDelay)).
		Watches(&v1alpha1.Review{}, r.reviews.Handler(countDelay)).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope struct {
	repository *v1alpha1.Repository
	// before is the status as it was read; repository.Status becomes what is to be written.
	before v1alpha1.RepositoryStatus
	now    time.Time
	// released says that the finalizer is off: the repository may be gone already.
	released bool
}

// Reconcile brings the status of one repository up to date, with at most one status write, or
// removes what belongs to a repository that is being deleted.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	repository := &v1alpha1.Repository{}
	if err := r.client.Get(ctx, req.NamespacedName, repository); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{repository: repository, before: *repository.Status.DeepCopy(), now: r.clock.Now()}
	if repository.DeletionTimestamp.IsZero() {
		return r.run(ctx, s, r.claim, r.observeSpec, r.observeCounts, r.observeScans, r.judge)
	}
	return r.run(ctx, s, r.observeSpec, r.observeRemoval, r.removeChildren)
}

// run goes through the phases and writes the status, unless the repository may be gone already.
func (r *Reconciler) run(ctx context.Context, s *scope, steps ...phases.Phase[scope]) (ctrl.Result, error) {
	return phases.Run(ctx, s, func() error {
		if s.released {
			return nil
		}
		_, err := patch.Status(ctx, r.client, s.repository, patch.Stored(s.before.ObservedGeneration, s.before), s.repository.Status)
		return err
	}, steps...)
}

// key names the repository as its children refer to it.
func (s *scope) key() types.NamespacedName { return client.ObjectKeyFromObject(s.repository) }
