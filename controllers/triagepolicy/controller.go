// Package triagepolicy puts the generations of policies into force, takes them out of it, and counts what they decide.
// The verdicts themselves are in the findings, whose controller gives them.
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
	// recountDelay is how long changes of findings are gathered before policies count anew.
	recountDelay = 3 * time.Second
	// countingShare bounds what counting takes of one processor: a count is followed by that many times its duration
	// without one.
	countingShare = 20
	// longestCount is how long a policy may be evaluated over all findings before it is given up: well below the time
	// that a reconcile has, since one that fails would try again, and keep its worker from others.
	longestCount = 30 * time.Second
	// longestWait is how late a policy may begin or end after a clock was put forward, or the machine slept, and how
	// often one that depends on the time counts.
	longestWait = time.Hour
	// turn is how soon a policy that somebody has just written is looked at again where another keeps it waiting, and
	// recountTurn how soon one is that only counts anew.
	turn        = 200 * time.Millisecond
	recountTurn = 10 * turn
)

// Reconciler reconciles TriagePolicies.
type Reconciler struct {
	reconcile.Base
	policies *policies.Book
	numbers  *numbers
	// longestCount is the constant of that name.
	longestCount time.Duration
	// lastCount is how long the last count took, by namespace: a large organization delays no other.
	lastCount sync.Map
	// atWork has the namespaces of which a policy is being counted. One at a time leaves the other workers to others: a
	// hundred costly policies over many findings take minutes.
	atWork sync.Map
	// memories are what counts remember, by namespace.
	memories    sync.Map
	evaluations prometheus.Counter
}

// SetupWithManager adds the controller of TriagePolicies and that of their pages to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	if err := setUpPages(ctx, mgr, options, clock.RealClock{}); err != nil {
		return err
	}
	return newReconciler(reconcile.NewBase(mgr)).setUp(mgr, options)
}

func (r *Reconciler) setUp(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.TriagePolicy{}, builder.WithPredicates(specChanged)).
		Watches(&v1alpha1.TriagePolicy{}, r.recount(), builder.WithPredicates(decidesOtherwise)).
		Watches(&v1alpha1.Finding{}, r.recount(), builder.WithPredicates(countsOtherwise)).
		Watches(&v1alpha1.Project{}, r.recount(), builder.WithPredicates(watch.Updates(rules.ProjectFactsDiffer))).
		Watches(&v1alpha1.Repository{}, r.recount(), builder.WithPredicates(watch.Updates(rules.RepositoryFactsDiffer))).
		WithOptions(options).
		Complete(r)
}

func newReconciler(base reconcile.Base) *Reconciler {
	return &Reconciler{
		Base: base, policies: policies.NewBook(base.Client), numbers: theNumbers, longestCount: longestCount,
		evaluations: theEvaluations,
	}
}

// specChanged passes over our own status writes.
var specChanged = watch.SpecOr(func(_, _ *v1alpha1.TriagePolicy) bool { return false })

// decidesOtherwise passes over what leaves the other policies' counts as they are.
var decidesOtherwise = watch.Updates(func(before, after *v1alpha1.TriagePolicy) bool {
	return generationInForce(before) != generationInForce(after)
})

// generationInForce is 0 where none is.
func generationInForce(policy *v1alpha1.TriagePolicy) int64 {
	if policy.Status.InForce == nil {
		return 0
	}
	return policy.Status.InForce.Generation
}

// countsOtherwise passes over what leaves all counts as they are: a finding's history and conditions.
var countsOtherwise = watch.SpecOr(func(before, after *v1alpha1.Finding) bool {
	return findingstate.Undecided(before) != findingstate.Undecided(after) ||
		findingstate.PersonsStatus(before) != findingstate.PersonsStatus(after)
})

// recount enqueues the policies of the namespace, a while later: thousands of findings may change together. A policy
// that somebody has just written comes before them.
func (r *Reconciler) recount() handler.EventHandler {
	return watch.Changes(func(ctx context.Context, change watch.Change, q watch.Queue) {
		if change.Initial {
			return // Every policy is reconciled on its own account.
		}
		namespace := change.Object().GetNamespace()
		watch.AddLast(q, r.untilRecount(namespace),
			watch.List(ctx, r.Client, &v1alpha1.TriagePolicyList{}, client.InNamespace(namespace)))
	})
}

func (r *Reconciler) untilRecount(namespace string) time.Duration {
	took, _ := r.lastCount.Load(namespace)
	last, _ := took.(time.Duration) // 0 before the first
	return max(recountDelay, countingShare*last)
}

// untilTurn is how soon a policy is looked at again that another of its organization keeps waiting.
func (r *Reconciler) untilTurn(ctx context.Context, req ctrl.Request) time.Duration {
	policy := &v1alpha1.TriagePolicy{}
	err := r.Client.Get(ctx, req.NamespacedName, policy, client.UnsafeDisableDeepCopy)
	if err == nil && policy.Status.ObservedGeneration == policy.Generation {
		return recountTurn
	}
	return turn
}

// scope is what one reconcile works on.
type scope struct {
	reconcile.Scope[*v1alpha1.TriagePolicy, *v1alpha1.TriagePolicyStatus]
	// declared is the spec as it is; nil where it does not compile, which wrong then says.
	declared *rules.Policy
	wrong    *rules.CompileError
	// counted is what the generation that is to be judged matches, earlier what the one before does.
	counted, earlier tally
	// partial: not all was counted, since that took too long.
	partial bool
	// whyNot is the reason for which the declared spec does not decide, because the message for people.
	whyNot, because string
}

func newScope() *scope {
	return &scope{Scope: *reconcile.NewScope(&v1alpha1.TriagePolicy{})}
}

// Reconcile puts a policy into force or takes it out, and brings its counts up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if _, busy := r.atWork.LoadOrStore(req.Namespace, true); busy {
		return ctrl.Result{RequeueAfter: r.untilTurn(ctx, req)}, nil
	}
	defer r.atWork.Delete(req.Namespace)
	return reconcile.Loop[*scope]{
		Base: r.Base, New: newScope,
		Phases: []reconcile.Phase[*scope]{r.compile, r.count, r.putInForce, r.report},
		Gone: func(name types.NamespacedName) {
			r.numbers.forget(name)
			r.forget(name)
			r.lastCount.Delete(name.Namespace) // the next count of another policy notes it again
		},
	}.Run(ctx, req)
}
