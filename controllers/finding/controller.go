// Package finding records what follows from a finding's spec: its state, when it last
// changed, what happened to it, and whether what it refers to is there. It makes webhook
// deliveries of what happened, and writes the audit log of people's decisions.
package finding

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
)

// Reconciler reconciles Findings.
type Reconciler struct {
	client client.Client
	ledger *ledger.Ledger
	// audit gets a line for each decision that a person took.
	audit logr.Logger
	clock clock.PassiveClock
}

// SetupWithManager adds the controller of Findings to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	deliveries, err := ledger.New(ctx, mgr, kind)
	if err != nil {
		return err
	}
	r := &Reconciler{
		client: mgr.GetClient(),
		ledger: deliveries,
		audit:  mgr.GetLogger().WithName("audit"),
		clock:  clock.RealClock{},
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Finding{}, referencesIndex, referencesOf); err != nil {
		return fmt.Errorf("index findings by what they refer to: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Finding{}, builder.WithPredicates(worthReconciling)).
		Watches(&v1alpha1.Repository{}, handler.Funcs{
			CreateFunc: r.enqueueOnCreate(waitsForRepository),
			DeleteFunc: r.enqueueOnDelete(refersToRepository),
		}, builder.WithPredicates(createdOrDeleted)).
		Watches(&v1alpha1.Project{}, handler.Funcs{
			CreateFunc: r.enqueueOnCreate(waitsForProject),
			UpdateFunc: r.enqueueOnUpdate(refersToProject),
			DeleteFunc: r.enqueueOnDelete(refersToProject),
		}, builder.WithPredicates(createdDeletedOrMoved)).
		Watches(&v1alpha1.WebhookEndpoint{}, deliveries.Endpoints()).
		Watches(&v1alpha1.WebhookDelivery{}, deliveries.Pages()).
		Watches(&v1alpha1.Scan{}, deliveries.ScansGone()).
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

// Reconcile brings the status of one finding up to its spec and makes the deliveries that are
// owed for what has changed. The status is written once, and once more after deliveries were made.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	finding := &v1alpha1.Finding{}
	if err := r.client.Get(ctx, req.NamespacedName, finding); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !finding.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	s := &scope{finding: finding, before: *finding.Status.DeepCopy(), now: r.clock.Now()}
	return patch.Outcome(r.run(ctx, s))
}

func (r *Reconciler) run(ctx context.Context, s *scope) (ctrl.Result, error) {
	write := func(ctx context.Context) (bool, error) { return r.write(ctx, s) }
	if err := r.ledger.MakeRoom(ctx, s.finding, write); err != nil {
		return ctrl.Result{}, err
	}
	observeSpec(s)
	if err := r.observeReferences(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	return r.ledger.Settle(ctx, s.finding, write)
}

// write stores the status where anything in it differs, and tells the log of what people
// decided before. It makes no Event of what has happened: each would be a write of its own beside
// this one, a scan can close thousands of findings at once, and the transitions say the same for
// longer.
func (r *Reconciler) write(ctx context.Context, s *scope) (bool, error) {
	r.auditTriage(s)
	written, err := patch.Status(ctx, r.client, s.finding, s.before, s.finding.Status)
	if written {
		s.before = *s.finding.Status.DeepCopy()
	}
	return written, err
}

// exists reports whether the object is in the cache.
func (r *Reconciler) exists(ctx context.Context, namespace string, name v1alpha1.ResourceName, object client.Object) (bool, error) {
	err := r.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: string(name)}, object, client.UnsafeDisableDeepCopy)
	return err == nil, client.IgnoreNotFound(err)
}
