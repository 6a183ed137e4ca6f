// Package reviewissue records what follows from a review issue's spec and from the commits
// that its review has looked at: whether it is resolved, by which commit, and since when. It
// makes webhook deliveries of what has become of it.
package reviewissue

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
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
)

// reviewIndex is the cache index of issues by the review that raised them.
const reviewIndex = "review"

// Reconciler reconciles ReviewIssues.
type Reconciler struct {
	client   client.Client
	ledger   *ledger.Ledger
	recorder events.EventRecorder
	clock    clock.PassiveClock
}

// SetupWithManager adds the controller of ReviewIssues to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	deliveries, err := ledger.New(ctx, mgr, kind)
	if err != nil {
		return err
	}
	r := &Reconciler{
		client:   mgr.GetClient(),
		ledger:   deliveries,
		recorder: mgr.GetEventRecorder(v1alpha1.ControllerFieldManager),
		clock:    clock.RealClock{},
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.ReviewIssue{}, reviewIndex, reviewOf); err != nil {
		return fmt.Errorf("index review issues by review: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.ReviewIssue{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		// A review's status says nothing of its issues, and is written far more often than its spec.
		Watches(&v1alpha1.Review{}, handler.EnqueueRequestsFromMapFunc(r.issuesOf),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.WebhookEndpoint{}, deliveries.Endpoints()).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope struct {
	issue *v1alpha1.ReviewIssue
	// before is the status as it was read; issue.Status becomes what is to be written.
	before v1alpha1.ReviewIssueStatus
	now    time.Time
}

// Reconcile brings the status of one issue up to both specs and makes the deliveries that are
// owed for what has become of it. The status is written once, and once more after deliveries
// were made.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	issue := &v1alpha1.ReviewIssue{}
	if err := r.client.Get(ctx, req.NamespacedName, issue); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !issue.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	s := &scope{issue: issue, before: *issue.Status.DeepCopy(), now: r.clock.Now()}
	return patch.Outcome(r.run(ctx, s))
}

func (r *Reconciler) run(ctx context.Context, s *scope) (ctrl.Result, error) {
	write := func(ctx context.Context) (bool, error) { return r.write(ctx, s) }
	if err := r.ledger.MakeRoom(ctx, s.issue, write); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.observe(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	return r.ledger.Settle(ctx, s.issue, write)
}

// write stores the status where anything in it differs, and tells people what has happened.
func (r *Reconciler) write(ctx context.Context, s *scope) (bool, error) {
	written, err := patch.Status(ctx, r.client, s.issue, s.before, s.issue.Status)
	if written {
		r.announce(s)
		s.before = *s.issue.Status.DeepCopy()
	}
	return written, err
}

func reviewOf(object client.Object) []string {
	return []string{string(object.(*v1alpha1.ReviewIssue).Spec.ReviewRef.Name)}
}

// issuesOf wakes the issues of a review that has come, gone or looked at another commit.
func (r *Reconciler) issuesOf(ctx context.Context, review client.Object) []reconcile.Request {
	issues := &v1alpha1.ReviewIssueList{}
	if err := r.client.List(ctx, issues, client.InNamespace(review.GetNamespace()),
		client.MatchingFields{reviewIndex: review.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		// The cache answers or the manager is on its way out; there is nobody to give an error to.
		ctrl.LoggerFrom(ctx).Error(err, "list the issues of a review that has changed", "review", review.GetName())
		return nil
	}
	requests := make([]reconcile.Request, len(issues.Items))
	for i := range issues.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&issues.Items[i])
	}
	return requests
}
