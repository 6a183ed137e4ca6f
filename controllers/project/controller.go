// Package project records what follows from a project's spec and from what belongs to it, and
// removes what belongs to it when it goes.
package project

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
	"github.com/appsec-dev/findings-operator/controllers/internal/phases"
	"github.com/appsec-dev/findings-operator/controllers/internal/removal"
	"github.com/appsec-dev/findings-operator/controllers/internal/tally"
)

// countDelay is how long changes of findings are gathered before the count is written.
const countDelay = time.Second

// Reconciler reconciles Projects.
type Reconciler struct {
	client   client.Client
	remover  removal.Remover
	recorder events.EventRecorder
	clock    clock.PassiveClock
	// findings by project.
	findings *tally.Tally
}

// SetupWithManager adds the controller of Projects to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	r := &Reconciler{
		client:   mgr.GetClient(),
		remover:  removal.Remover{Client: mgr.GetClient(), Reader: mgr.GetAPIReader()},
		recorder: mgr.GetEventRecorder(v1alpha1.ControllerFieldManager),
		clock:    clock.RealClock{},
		findings: tally.New(everyFinding),
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Scan{}, projectField, projectOfScan); err != nil {
		return fmt.Errorf("index scans by project: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Project{}, repositoryField, repositoryOfProject); err != nil {
		return fmt.Errorf("index projects by repository: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Project{}, builder.WithPredicates(worthReconciling)).
		Watches(&v1alpha1.Finding{}, r.findings.Handler(countDelay)).
		Watches(&v1alpha1.Scan{}, handler.EnqueueRequestsFromMapFunc(scanOwner)).
		Watches(&v1alpha1.Repository{}, handler.EnqueueRequestsFromMapFunc(r.projectsOf),
			builder.WithPredicates(createdOrDeleted)).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope struct {
	project *v1alpha1.Project
	// before is the status as it was read; project.Status becomes what is to be written.
	before v1alpha1.ProjectStatus
	now    time.Time
	// released says that the finalizer is off: the project may be gone already.
	released bool
}

// Reconcile brings the status of one project up to date, with at most one status write, or
// removes what belongs to a project that is being deleted.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	project := &v1alpha1.Project{}
	if err := r.client.Get(ctx, req.NamespacedName, project); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{project: project, before: *project.Status.DeepCopy(), now: r.clock.Now()}
	if project.DeletionTimestamp.IsZero() {
		return r.run(ctx, s, r.claim, r.observeSpec, r.observeFindings, r.observeScans, r.observeRepository)
	}
	return r.run(ctx, s, r.observeSpec, r.observeRemoval, r.removeChildren)
}

// run goes through the phases and writes the status, unless the project may be gone already.
func (r *Reconciler) run(ctx context.Context, s *scope, steps ...phases.Phase[scope]) (ctrl.Result, error) {
	return phases.Run(ctx, s, func() error {
		if s.released {
			return nil
		}
		_, err := patch.Status(ctx, r.client, s.project, patch.Stored(s.before.ObservedGeneration, s.before), s.project.Status)
		return err
	}, steps...)
}

// key names the project as its children refer to it.
func (s *scope) key() types.NamespacedName { return client.ObjectKeyFromObject(s.project) }
