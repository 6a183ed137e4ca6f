// Package organization creates the namespace of each Organization, binds the roles of its users and
// scanners in it, and counts its objects.
package organization

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// Reconciler reconciles Organizations.
type Reconciler struct {
	reconcile.Base
}

// SetupWithManager adds the controller of Organizations to the manager.
func SetupWithManager(_ context.Context, mgr ctrl.Manager, options controller.Options) error {
	r := &Reconciler{
		Base: reconcile.NewBase(mgr),
	}
	// Only this controller writes the status. An annotation lets a removal proceed.
	worthReconciling := predicate.Or[client.Object](predicate.AnnotationChangedPredicate{},
		watch.SpecOr(watch.FinalizersChanged))
	countLater := watch.EnqueueAfter(watch.GatherDelay, watch.Organization)
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Organization{}, builder.WithPredicates(worthReconciling)).
		Watches(&corev1.Namespace{}, watch.Enqueue(ofNamespace)).
		Watches(&rbacv1.RoleBinding{}, watch.Enqueue(watch.Organization), builder.WithPredicates(managed)).
		WatchesMetadata(&corev1.ServiceAccount{}, watch.Enqueue(watch.Organization), builder.WithPredicates(managed)).
		Watches(&corev1.ResourceQuota{}, watch.Enqueue(watch.Organization), builder.WithPredicates(managed,
			watch.NewSinceStart, quotaMatters)).
		Watches(&v1alpha1.Repository{}, countLater, builder.WithPredicates(watch.NewSinceStart, findingsDiffer)).
		Watches(&v1alpha1.Project{}, countLater, builder.WithPredicates(watch.NewSinceStart, watch.CreatedOrDeleted)).
		Watches(&v1alpha1.APIKey{}, countLater, builder.WithPredicates(watch.NewSinceStart, watch.CreatedOrDeleted)).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope struct {
	*reconcile.Scope[*v1alpha1.Organization, *v1alpha1.OrganizationStatus]
	// home is the organization's namespace.
	home *corev1.Namespace
	// usedUp holds the plural names of the kinds whose quota is exhausted.
	usedUp []string
	// held describes what blocks the removal of the organization; undeleted is the API server's error for the deletion of
	// the namespace. Both are zero unless the removal waits.
	held      string
	undeleted error
}

func newScope() *scope { return scopeOf(&v1alpha1.Organization{}) }

func scopeOf(organization *v1alpha1.Organization) *scope {
	return &scope{Scope: reconcile.NewScope(organization)}
}

// namespace returns the name that the organization's namespace must have.
func (s *scope) namespace() string { return v1alpha1.NamespacePrefix + s.Object.Name }

// Reconcile updates one organization's namespace, roles and status, or removes the namespace of an organization that is
// being deleted. While the removal waits, the organization is in use, so it still follows its spec.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcile.Loop[*scope]{
		Base: r.Base, New: newScope,
		Phases: []reconcile.Phase[*scope]{
			showRefusal(r.adoptNamespace), r.count, showRefusal(r.labelNamespace), showRefusal(r.grantAccess),
			showRefusal(r.setQuota), r.open,
		},
		Removal: []reconcile.Phase[*scope]{
			// What blocks the deletion of the namespace may also block its labels.
			r.remove, r.count, showRefusal(r.grantAccess), showRefusal(r.setQuota), showRefusal(r.labelNamespace), r.wait,
		},
		Stored: r.announceQuotas,
	}.Run(ctx, req)
}

// showRefusal returns the phase, which records a verdict if the API server refuses its requests. The condition for
// exhausted quotas stays then, because they are unknown. A namespace that is being deleted refuses, too, which a watch
// reports.
func showRefusal(phase reconcile.Phase[*scope]) reconcile.Phase[*scope] {
	return func(ctx context.Context, s *scope) error {
		err := phase(ctx, s)
		if !kube.IsRefusal(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return err
		}
		s.RetryRefused(ctx, err, "what the organization needs was refused, and is tried again later")
		s.Status.ObservedGeneration = s.Object.Generation
		s.Judge(s.refusalVerdict(err))
		s.Stop()
		return nil
	}
}

func (s *scope) refusalVerdict(err error) conditions.Verdict {
	if s.held != "" || s.undeleted != nil {
		meanwhile := fmt.Sprintf(" Meanwhile the API server refuses what the organization needs, which is tried again: %q.",
			conditions.Shortened(err.Error()))
		return s.waiting(meanwhile)
	}
	return conditions.NotReady(v1alpha1.ReasonRefused,
		fmt.Sprintf("The API server refuses what the organization needs, which is tried again: %q. Remove what "+
			"blocks it, for example an admission policy or a quota of the cluster.", conditions.Shortened(err.Error())))
}

// open records the namespace in the status, as the last step, because the REST API then accepts the organization's
// keys.
func (r *Reconciler) open(_ context.Context, s *scope) error {
	s.Status.Namespace = s.namespace()
	s.conclude(conditions.Ready(fmt.Sprintf("Namespace %q is ready.", s.namespace())))
	return nil
}

func (s *scope) conclude(verdict conditions.Verdict) {
	s.Status.ObservedGeneration = s.Object.Generation
	s.Judge(verdict)
	s.judgeQuotas()
}
