// Package organization gives each Organization its namespace and the people and scanners of
// the organization their roles in it, and counts what it has.
package organization

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
)

// Reconciler reconciles Organizations.
type Reconciler struct {
	client client.Client
	// live asks the API server itself, where a decision must not rest on a cache.
	live     client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
}

// SetupWithManager adds the controller of Organizations to the manager.
func SetupWithManager(_ context.Context, mgr ctrl.Manager, options controller.Options) error {
	r := &Reconciler{
		client:   mgr.GetClient(),
		live:     mgr.GetAPIReader(),
		recorder: mgr.GetEventRecorder(v1alpha1.ControllerFieldManager),
		clock:    clock.RealClock{},
	}
	// Statuses are ours alone; the annotation lets a removal go on.
	worthReconciling := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Organization{}, builder.WithPredicates(worthReconciling)).
		Watches(&corev1.Namespace{}, atOnce(nameOf)).
		Watches(&rbacv1.RoleBinding{}, atOnce(namespaceOf), builder.WithPredicates(managed)).
		WatchesMetadata(&corev1.ServiceAccount{}, atOnce(namespaceOf), builder.WithPredicates(managed)).
		Watches(&corev1.ResourceQuota{}, atOnce(namespaceOf), builder.WithPredicates(managed, quotaMatters)).
		Watches(&v1alpha1.Repository{}, soon(findingsDiffer)).
		Watches(&v1alpha1.Project{}, soon(never)).
		Watches(&v1alpha1.APIKey{}, soon(never)).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope struct {
	organization *v1alpha1.Organization
	// before is the status as it was read; organization.Status becomes what is to be written.
	before v1alpha1.OrganizationStatus
	// usedUp are the quotas that leave no room, by the kinds' plural names.
	usedUp []string
	now    time.Time
}

// namespace is the name that the organization's namespace must have.
func (s *scope) namespace() string { return v1alpha1.NamespacePrefix + s.organization.Name }

// Reconcile brings one organization's namespace, roles and status up to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	organization := &v1alpha1.Organization{}
	if err := r.client.Get(ctx, req.NamespacedName, organization); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{organization: organization, before: *organization.Status.DeepCopy(), now: r.clock.Now()}
	if !organization.DeletionTimestamp.IsZero() {
		return patch.Outcome(r.remove(ctx, s))
	}
	// The finalizer comes first: a namespace made without it could outlive its organization.
	if err := patch.AddFinalizer(ctx, r.client, organization, v1alpha1.CleanupFinalizer); err != nil {
		return patch.Outcome(ctrl.Result{}, err)
	}
	verdict, err := r.run(ctx, s)
	if err != nil {
		return patch.Outcome(ctrl.Result{}, err)
	}
	return patch.Outcome(ctrl.Result{}, r.conclude(ctx, s, verdict))
}

// run goes through the phases until one has to wait. Every verdict but Ready is on something
// that a watch reports the end of.
func (r *Reconciler) run(ctx context.Context, s *scope) (conditions.Verdict, error) {
	verdict, err := r.adoptNamespace(ctx, s)
	if err != nil {
		return verdict, err
	}
	if !verdict.Ready {
		s.organization.Status.Namespace = ""
		s.organization.Status.Counts = v1alpha1.OrganizationCounts{}
		return verdict, nil
	}
	if err := r.grantAccess(ctx, s); err != nil {
		return verdict, err
	}
	if err := r.setQuota(ctx, s); err != nil {
		return verdict, err
	}
	// Only now: the namespace's name is what opens the REST API for the organization's keys.
	s.organization.Status.Namespace = s.namespace()
	return verdict, r.count(ctx, s)
}

// conclude writes the status, if anything in it differs.
func (r *Reconciler) conclude(ctx context.Context, s *scope, verdict conditions.Verdict) error {
	s.organization.Status.ObservedGeneration = s.organization.Generation
	conditions.Set(&s.organization.Status.Conditions, verdict, s.organization.Generation, s.now)
	s.judgeQuotas()
	written, err := patch.Status(ctx, r.client, s.organization, patch.Stored(s.before.ObservedGeneration, s.before), s.organization.Status)
	if written {
		r.announceQuotas(s)
	}
	return err
}
