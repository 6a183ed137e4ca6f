// Package triagepolicy puts generations of policies into and out of force, and counts what they decide. The verdicts
// themselves are in the status of findings, written by their controller.
package triagepolicy

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/policies"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	rules "github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

const (
	// recountDelay is how long changes of findings are gathered before policies are counted again. The policies to count
	// are listed watch.GatherDelay into it.
	recountDelay = 3 * time.Second
	// countingShare bounds the CPU time of counting, per policy: after findings change, a policy is counted again no
	// sooner than this many times the duration of the namespace's last count. The number of policies adds no delay,
	// because the limits of those in force depend on fresh counts.
	countingShare = 20
	// maxCount is how long a policy may be evaluated over all findings before the count is given up. It is well below the
	// reconcile timeout: a reconcile that times out is retried and keeps blocking its worker.
	maxCount = 30 * time.Second
)

// Reconciler reconciles TriagePolicies.
type Reconciler struct {
	reconcile.Base
	// local measures durations.
	local   clock.PassiveClock
	metrics *policyMetrics
	// maxCount is the constant of the same name; tests override it.
	maxCount time.Duration
	// lastCount holds the duration of the last count by namespace, so that a large organization does not delay others.
	lastCount sync.Map
	// memories holds the memory of each namespace.
	memories    sync.Map
	evaluations prometheus.Counter
}

// SetupWithManager adds the controllers of TriagePolicies and of their pages to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	base := reconcile.NewBase(mgr)
	if err := setUpPages(ctx, mgr, options, base.Clock); err != nil {
		return err
	}
	return newReconciler(base).setUp(mgr, options)
}

func (r *Reconciler) setUp(mgr ctrl.Manager, options controller.Options) error {
	// One policy per organization is counted at a time: a hundred costly ones over many findings take minutes.
	options.NewQueue = watch.NewSerialQueue
	recount := r.recount()
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.TriagePolicy{}, builder.WithPredicates(watch.SpecChanged)).
		Watches(&v1alpha1.TriagePolicy{}, recount, builder.WithPredicates(policies.DecidesOtherwise)).
		Watches(&v1alpha1.Finding{}, recount, builder.WithPredicates(watch.NewSinceStart, countsOtherwise)).
		Watches(&v1alpha1.Project{}, recount, builder.WithPredicates(policies.ProjectFactsDiffer)).
		Watches(&v1alpha1.Repository{}, recount, builder.WithPredicates(policies.RepositoryFactsDiffer)).
		WithOptions(options).
		Complete(r)
}

func newReconciler(base reconcile.Base) *Reconciler {
	return &Reconciler{
		Base: base, local: clock.RealClock{}, metrics: theMetrics,
		maxCount: maxCount, evaluations: theEvaluations,
	}
}

// countsOtherwise ignores updates that do not affect any count, such as those of a finding's history and conditions.
var countsOtherwise = watch.SpecOr(func(before, after *v1alpha1.Finding) bool {
	return findingstate.VerdictCounts(before) != findingstate.VerdictCounts(after) ||
		findingstate.StatusWithoutPolicies(before) != findingstate.StatusWithoutPolicies(after)
})

// recount enqueues the policies of the namespace after a delay, because thousands of findings may change together, and
// behind policies that a user has just written.
func (r *Reconciler) recount() handler.EventHandler {
	return watch.Changes(watch.Gathered(watch.GatherDelay, func(ctx context.Context, change watch.Change, q watch.Queue) {
		namespace := change.Object().GetNamespace()
		watch.AddLast(q, r.recountDelay(namespace)-watch.GatherDelay,
			watch.List(ctx, r.Client, &v1alpha1.TriagePolicyList{}, client.InNamespace(namespace)))
	}))
}

func (r *Reconciler) recountDelay(namespace string) time.Duration {
	took, _ := r.lastCount.Load(namespace)
	last, _ := took.(time.Duration) // 0 before the first
	return max(recountDelay, countingShare*last)
}

// scope is what one reconcile works on.
type scope struct {
	*reconcile.Scope[*v1alpha1.TriagePolicy, *v1alpha1.TriagePolicyStatus]
	// declared is the current spec; nil if it does not compile, and then compileErr is the error.
	declared   *rules.Policy
	compileErr *rules.CompileError
	// counted is the tally of the declared generation, earlier that of the generation in force.
	counted, earlier tally
	// partial means that a count, of the declared generation or of an earlier one in force, was given up because it took
	// too long.
	partial bool
	// earlierCounted means that an earlier generation in force was counted too, to the end.
	earlierCounted bool
}

func newScope() *scope {
	return &scope{Scope: reconcile.NewScope(&v1alpha1.TriagePolicy{})}
}

// Reconcile puts a policy into or out of force, and updates its counts.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcile.Loop[*scope]{
		Base: r.Base, New: newScope,
		Phases:   []reconcile.Phase[*scope]{r.compile, r.count, r.putInForce, r.report},
		Deleting: r.metrics.forget, // it decides nothing, whatever holds it
		Gone: func(name types.NamespacedName) {
			r.metrics.forget(name)
			r.forget(name)
			r.lastCount.Delete(name.Namespace) // the next count of another policy records it again
		},
	}.Run(ctx, req)
}
