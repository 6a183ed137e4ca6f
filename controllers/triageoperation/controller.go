// Package triageoperation carries out TriageOperations: it selects their findings, previews their effect, and applies
// them part by part once they are committed.
package triageoperation

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

const (
	// nextPartDelay is when an operation is requeued after a part, so that other operations get their turn.
	nextPartDelay = 5 * time.Millisecond
	// cacheRecheck is how often an operation that has its set checks whether the cache shows that. Usually the watch
	// enqueues it sooner.
	cacheRecheck = time.Second
	// undoRecheck is how often an undo checks whether the operation that it undoes has ended.
	undoRecheck = time.Second
)

// Reconciler reconciles TriageOperations.
type Reconciler struct {
	reconcile.Base
	// local measures durations.
	local clock.PassiveClock
	pager *ledger.Pager
	// refused measures, per operation, how long each reconcile has ended with a refused write of a finding or a part, or
	// with a panic.
	refused reconcile.Since
	// memories holds the *memory of each operation that works through a part, by types.NamespacedName.
	memories sync.Map
	// audit logs who committed each operation.
	audit logr.Logger
	// as returns a client that writes an operation's decisions in the namespace.
	as func(namespace string) (rest.Interface, error)
}

// SetupWithManager adds the controller of TriageOperations to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	pager, err := ledger.NewOperationPager(ctx, mgr)
	if err != nil {
		return err
	}
	r := &Reconciler{
		Base: reconcile.NewBase(mgr), local: clock.RealClock{}, pager: pager,
		audit: mgr.GetLogger().WithName("audit"), as: executors(mgr.GetConfig()),
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.TriageOperation{}, builder.WithPredicates(watch.SpecChanged)).
		Watches(&v1alpha1.TriageOperation{}, r.enqueueNext()).
		Watches(&v1alpha1.Finding{}, pager.Findings()).
		Watches(&v1alpha1.WebhookEndpoint{}, pager.Endpoints()).
		WithOptions(options).
		Complete(r)
}

// executors returns clients that impersonate a namespace's ServiceAccount, which may only triage.
func executors(config *rest.Config) func(namespace string) (rest.Interface, error) {
	return func(namespace string) (rest.Interface, error) {
		return kube.NewClient(kube.As(config, namespace, v1alpha1.OperationsServiceAccount))
	}
}

type scope = reconcile.Scope[*v1alpha1.TriageOperation, *v1alpha1.TriageOperationStatus]

func newScope() *scope { return reconcile.NewScope(&v1alpha1.TriageOperation{}) }

// Reconcile selects an operation's findings once, then works through one part of them per call.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := reconcile.Loop[*scope]{
		Base: r.Base, New: newScope,
		Phases: []reconcile.Phase[*scope]{r.paginate, r.awaitTurn, r.selectFindings, r.workThroughPart, r.complete},
		Stored: r.announce,
		Gone:   r.forget,
	}.Run(ctx, req)
	if !isRefusal(err) {
		// Only consecutive refusals count: an API server that is starting may refuse once before an outage and once after it.
		r.refused.Forget(req.NamespacedName)
	}
	return result, err
}

// operations returns the operations in a namespace. They must not be changed.
func (r *Reconciler) operations(ctx context.Context, namespace string) ([]v1alpha1.TriageOperation, error) {
	list := &v1alpha1.TriageOperationList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the triage operations: %w", err)
	}
	return list.Items, nil
}
