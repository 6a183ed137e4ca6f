// Package repository derives a repository's status from its spec and from the objects that belong
// to it, and removes these objects when the repository is deleted.
package repository

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/scans"
	"github.com/appsec-dev/findings-operator/controllers/internal/tally"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

// Reconciler reconciles Repositories.
type Reconciler struct {
	reconcile.Base
	// findings, projects, scans and reviews by repository.
	findings *tally.Tally
	projects *tally.Tally
	scans    *tally.Tally
	reviews  *tally.Tally
	// latest holds the last scans by repository.
	latest *scans.Latest
}

// SetupWithManager adds the controller of Repositories to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	r := &Reconciler{
		Base:     reconcile.NewBase(mgr),
		findings: tally.New(everyFinding),
		projects: tally.New(everyProject),
		scans:    tally.New(everyScan),
		reviews:  tally.New(everyReview),
		latest:   scans.NewLatest(mgr.GetClient(), "repository.scans", repositoryOfScan),
	}
	if err := r.latest.Index(ctx, mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Repository{}, builder.WithPredicates(watch.SpecOr(watch.FinalizersChanged))).
		Watches(&v1alpha1.Finding{}, r.findings.Handler()).
		Watches(&v1alpha1.Scan{}, r.scans.Handler()).
		Watches(&v1alpha1.Scan{}, r.latest.Handler(), builder.WithPredicates(scans.CountsOtherwise)).
		Watches(&v1alpha1.Project{}, r.projects.Handler()).
		Watches(&v1alpha1.Review{}, r.reviews.Handler()).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope = reconcile.Scope[*v1alpha1.Repository, *v1alpha1.RepositoryStatus]

func newScope() *scope { return reconcile.NewScope(&v1alpha1.Repository{}) }

// Reconcile updates the status of one repository, or removes the objects that belong to a repository that is being
// deleted.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcile.Loop[*scope]{
		Base: r.Base, New: newScope,
		Phases:  []reconcile.Phase[*scope]{r.observeSpec, r.observeCounts, r.observeScans, r.judge},
		Removal: []reconcile.Phase[*scope]{r.observeSpec, r.observeRemoval, r.removeChildren},
	}.Run(ctx, req)
}
