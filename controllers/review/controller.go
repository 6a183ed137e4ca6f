// Package review records what follows from a review's spec and from its issues, and removes
// the issues when the review goes. It makes webhook deliveries of what has changed.
package review

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/phases"
	"github.com/appsec-dev/findings-operator/controllers/internal/removal"
)

// countDelay is how long changes of issues are gathered before they are counted.
const countDelay = time.Second

// Reconciler reconciles Reviews.
type Reconciler struct {
	client   client.Client
	ledger   *ledger.Ledger
	remover  removal.Remover
	recorder events.EventRecorder
	clock    clock.PassiveClock
}

// SetupWithManager adds the controller of Reviews to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	deliveries, err := ledger.New(ctx, mgr, kind)
	if err != nil {
		return err
	}
	r := &Reconciler{
		client:   mgr.GetClient(),
		ledger:   deliveries,
		remover:  removal.Remover{Client: mgr.GetClient(), Reader: mgr.GetAPIReader()},
		recorder: mgr.GetEventRecorder(v1alpha1.ControllerFieldManager),
		clock:    clock.RealClock{},
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.ReviewIssue{}, reviewField, reviewOfIssue); err != nil {
		return fmt.Errorf("index review issues by review: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Review{}, repositoryField, repositoryOfReview); err != nil {
		return fmt.Errorf("index reviews by repository: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Review{}, builder.WithPredicates(worthReconciling)).
		Watches(&v1alpha1.ReviewIssue{}, countLater(countDelay)).
		Watches(&v1alpha1.Repository{}, handler.EnqueueRequestsFromMapFunc(r.reviewsOf),
			builder.WithPredicates(createdOrDeleted)).
		Watches(&v1alpha1.WebhookEndpoint{}, deliveries.Endpoints()).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope struct {
	review *v1alpha1.Review
	// before is the status as it was read; review.Status becomes what is to be written.
	before v1alpha1.ReviewStatus
	now    time.Time
	// released says that the finalizer is off: the review may be gone already.
	released bool
}

// Reconcile brings the status of one review up to date and makes the deliveries that are owed
// for what has changed, or removes the issues of a review that is being deleted. The status is
// written once, and once more after deliveries were made.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	review := &v1alpha1.Review{}
	if err := r.client.Get(ctx, req.NamespacedName, review); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{review: review, before: *review.Status.DeepCopy(), now: r.clock.Now()}
	if review.DeletionTimestamp.IsZero() {
		return r.run(ctx, s, r.claim, r.makeRoom, r.observe, r.observeRepository)
	}
	return r.run(ctx, s, r.observe, r.emitLast, r.removeIssues)
}

// run goes through the phases, writes the status and makes the deliveries, unless the review may
// be gone already.
func (r *Reconciler) run(ctx context.Context, s *scope, steps ...phases.Phase[scope]) (ctrl.Result, error) {
	var again ctrl.Result
	result, err := phases.Run(ctx, s, func() error {
		if s.released {
			return nil
		}
		var err error
		again, err = r.ledger.Settle(ctx, s.review, s.writer(r.client))
		return err
	}, steps...)
	if err == nil && result.RequeueAfter == 0 {
		result = again
	}
	return result, err
}
