// Package reviewissue derives a review issue's status from its spec and from the reviewed commits:
// whether it is resolved, by which commit, and since when; and what users and policies decide about
// it. It makes webhook deliveries of its transitions.
package reviewissue

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/audit"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/policies"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

// reviewIndex is the cache index of issues by the review that raised them.
const reviewIndex = "review"

// Reconciler reconciles ReviewIssues.
type Reconciler struct {
	reconcile.Base
	ledger *ledger.Ledger
	// audit logs each decision stored in spec.triage, but not verdicts.
	audit audit.Log
}

// SetupWithManager adds the controller of ReviewIssues to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	deliveries, err := ledger.New(ctx, mgr, ledger.ReviewIssue)
	if err != nil {
		return err
	}
	r := &Reconciler{
		Base:   reconcile.NewBase(mgr),
		ledger: deliveries,
		audit:  audit.Log{To: mgr.GetLogger().WithName("audit"), Kind: "reviewIssue", Subject: "An issue of a review"},
	}
	if err := index.AddReference(ctx, mgr, &v1alpha1.ReviewIssue{}, reviewIndex, reviewOf); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.ReviewIssue{}, builder.WithPredicates(worthReconciling)).
		// Issues do not depend on their review's status, which is written far more often than its
		// spec.
		Watches(&v1alpha1.Review{}, watch.EnqueueIndexed(r.Client, &v1alpha1.ReviewIssueList{}, reviewIndex),
			builder.WithPredicates(watch.NewSinceStart, watch.SpecChanged)).
		Watches(&v1alpha1.Project{}, r.rejudge(ctx), builder.WithPredicates(policies.ProjectFactsDiffer)).
		Watches(&v1alpha1.Repository{}, r.rejudge(ctx), builder.WithPredicates(policies.RepositoryFactsDiffer)).
		Watches(&v1alpha1.TriagePolicy{}, r.rejudge(ctx), builder.WithPredicates(policies.DecidesOtherwise)).
		WatchesRawSource(policies.Hourly(r.Client, clock.RealClock{}, r.rejudge(ctx))).
		Watches(&v1alpha1.WebhookEndpoint{}, deliveries.Endpoints()).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope = reconcile.Scope[*v1alpha1.ReviewIssue, *v1alpha1.ReviewIssueStatus]

func newScope() *scope { return reconcile.NewScope(&v1alpha1.ReviewIssue{}) }

// Reconcile updates the status of one issue, and makes the deliveries that its transitions require.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcile.Loop[*scope]{
		Base: r.Base, New: newScope, Ledger: r.ledger,
		Phases: []reconcile.Phase[*scope]{r.observe, r.auditTriage},
		Stored: r.announce,
	}.Run(ctx, req)
}

func reviewOf(issue *v1alpha1.ReviewIssue) v1alpha1.ResourceName { return issue.Spec.ReviewRef.Name }
