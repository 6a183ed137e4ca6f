// Package project derives a project's status from its spec and from the objects that belong to it,
// and removes these objects when the project is deleted.
package project

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/scans"
	"github.com/appsec-dev/findings-operator/controllers/internal/tally"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

// Reconciler reconciles Projects.
type Reconciler struct {
	reconcile.Base
	// findings and scans by project.
	findings *tally.Tally
	scans    *tally.Tally
	// latest holds the last scans by project.
	latest *scans.Latest
}

// SetupWithManager adds the controller of Projects to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	r := &Reconciler{
		Base:     reconcile.NewBase(mgr),
		findings: tally.New(everyFinding),
		scans:    tally.New(everyScan),
		latest:   scans.NewLatest(mgr.GetClient(), "project.scans", projectOfScan),
	}
	if err := errors.Join(
		r.latest.Index(ctx, mgr),
		index.AddReference(ctx, mgr, &v1alpha1.Project{}, index.Repository, repositoryOfProject),
	); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Project{}, builder.WithPredicates(worthReconciling)).
		Watches(&v1alpha1.Finding{}, r.findings.Handler()).
		Watches(&v1alpha1.Scan{}, r.scans.Handler()).
		Watches(&v1alpha1.Scan{}, r.latest.Handler(), builder.WithPredicates(scans.CountsOtherwise)).
		Watches(&v1alpha1.Repository{}, watch.EnqueueIndexed(r.Client, &v1alpha1.ProjectList{}, index.Repository),
			builder.WithPredicates(watch.NewSinceStart, watch.CreatedOrDeleted)).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope = reconcile.Scope[*v1alpha1.Project, *v1alpha1.ProjectStatus]

func newScope() *scope { return reconcile.NewScope(&v1alpha1.Project{}) }

// Reconcile updates the status of one project, or removes the objects that belong to a project that is being deleted.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcile.Loop[*scope]{
		Base: r.Base, New: newScope,
		Phases:  []reconcile.Phase[*scope]{r.observeSpec, r.observeFindings, r.observeScans, r.observeRepository},
		Removal: []reconcile.Phase[*scope]{r.observeSpec, r.observeRemoval, r.removeChildren},
	}.Run(ctx, req)
}
