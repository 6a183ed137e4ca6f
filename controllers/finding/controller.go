// Package finding records what follows from a finding's spec: its state, when it last
// changed, what happened to it, and whether what it refers to is there.
package finding

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
)

// Reconciler reconciles Findings.
type Reconciler struct {
	client   client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
}

// SetupWithManager adds the controller of Findings to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	r := &Reconciler{
		client:   mgr.GetClient(),
		recorder: mgr.GetEventRecorder(v1alpha1.ControllerFieldManager),
		clock:    clock.RealClock{},
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Finding{}, references, referencesOf); err != nil {
		return fmt.Errorf("index findings by what they refer to: %w", err)
	}
	comeAndGone := builder.WithPredicates(createdOrDeleted)
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Finding{}, builder.WithPredicates(worthReconciling)).
		Watches(&v1alpha1.Repository{}, handler.Funcs{
			CreateFunc: r.enqueueOnCreate(waitsForRepository),
			DeleteFunc: r.enqueueOnDelete(refersToRepository),
		}, comeAndGone).
		Watches(&v1alpha1.Project{}, handler.Funcs{
			CreateFunc: r.enqueueOnCreate(waitsForProject),
			DeleteFunc: r.enqueueOnDelete(refersToProject),
		}, comeAndGone).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope struct {
	finding *v1alpha1.Finding
	// before is the status as it was read; finding.Status becomes what is to be written.
	before v1alpha1.FindingStatus
	now    time.Time
}

// Reconcile brings the status of one finding up to its spec, with at most one write.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	finding := &v1alpha1.Finding{}
	if err := r.client.Get(ctx, req.NamespacedName, finding); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !finding.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	s := &scope{finding: finding, before: *finding.Status.DeepCopy(), now: r.clock.Now()}

	observeSpec(s)
	if err := r.observeReferences(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	written, err := patch.Status(ctx, r.client, finding, s.before, finding.Status)
	if written {
		r.announce(s)
	}
	return patch.Outcome(ctrl.Result{}, err)
}

// exists reports whether the object is in the cache.
func (r *Reconciler) exists(ctx context.Context, namespace string, name v1alpha1.ResourceName, object client.Object) (bool, error) {
	err := r.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: string(name)}, object, client.UnsafeDisableDeepCopy)
	return err == nil, client.IgnoreNotFound(err)
}
