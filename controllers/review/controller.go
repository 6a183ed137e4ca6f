// Package review derives a review's status from its spec and its issues, makes webhook deliveries of its transitions,
// and removes the issues when the review is deleted.
package review

import (
	"cmp"
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/emptying"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

// Reconciler reconciles Reviews.
type Reconciler struct {
	reconcile.Base
	ledger   *ledger.Ledger
	emptying *emptying.Reviews
	// refused measures how long each attempt at a deleted review's last deliveries has been refused.
	refused reconcile.Since
}

// Settings configure the controller.
type Settings struct {
	// Emptying must be that of the controller of retention.
	Emptying *emptying.Reviews
}

// NewEmptying returns a value for the Settings of this controller and of retention's.
func NewEmptying() *emptying.Reviews { return &emptying.Reviews{} }

// SetupWithManager adds the controller of Reviews to the manager.
func (settings Settings) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	deliveries, err := ledger.New(ctx, mgr, ledger.Review)
	if err != nil {
		return err
	}
	r := &Reconciler{
		Base:     reconcile.NewBase(mgr),
		ledger:   deliveries,
		emptying: cmp.Or(settings.Emptying, NewEmptying()),
	}
	if err := errors.Join(
		index.AddReference(ctx, mgr, &v1alpha1.ReviewIssue{}, index.Review, reviewOfIssue),
		index.AddReference(ctx, mgr, &v1alpha1.Review{}, index.Repository, repositoryOfReview),
	); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Review{}, builder.WithPredicates(worthReconciling)).
		// The issues that the review's commits show come by another watch. An import writes them first, but the cache may not
		// hold them yet, and they would count as closed. The delay usually prevents that. If an issue has changed within the
		// delay, the review is already queued for an earlier time.
		Watches(&v1alpha1.Review{}, handler.Funcs{UpdateFunc: watch.EnqueueAfter(watch.GatherDelay, watch.Itself).Update},
			builder.WithPredicates(watch.Updates(otherCommits))).
		// Only the decision matters in an issue's status: the other counters are derived from the specs.
		Watches(&v1alpha1.ReviewIssue{}, watch.EnqueueAfter(watch.GatherDelay, watch.Reference(reviewOfIssue)),
			builder.WithPredicates(watch.NewSinceStart, countsOtherwise)).
		Watches(&v1alpha1.Repository{}, watch.EnqueueIndexed(r.Client, &v1alpha1.ReviewList{}, index.Repository),
			builder.WithPredicates(watch.NewSinceStart, watch.CreatedOrDeleted)).
		Watches(&v1alpha1.WebhookEndpoint{}, deliveries.Endpoints()).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope = reconcile.Scope[*v1alpha1.Review, *v1alpha1.ReviewStatus]

func newScope() *scope { return reconcile.NewScope(&v1alpha1.Review{}) }

// Reconcile updates the status of one review and makes the deliveries that its changes require, or removes the issues
// of a review that is being deleted.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcile.Loop[*scope]{
		Base: r.Base, New: newScope, Ledger: r.ledger,
		Phases:  []reconcile.Phase[*scope]{r.observe, r.leaveEmptying, r.observeRepository},
		Removal: []reconcile.Phase[*scope]{r.observe, r.emitLast, r.removeIssues},
		Gone:    r.refused.Forget,
	}.Run(ctx, req)
}
