// Package findingtrend records how many findings each project had, with one row per day on which the
// numbers changed.
//
// Rows are computed from the findings and their recorded transitions, never incremented: a restarted controller counts
// nothing twice, and fills in the days on which no controller ran.
package findingtrend

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

const (
	// gatherDelay is how long changes of findings are gathered before a project is counted. Most imports are over by then.
	gatherDelay = 10 * time.Second
	// minInterval is the minimum time between two writes of a project's rows.
	minInterval = time.Hour
	// patience is how long a write waits for the statuses of changed findings, which record the days of changes.
	patience = 10 * time.Minute
	// maxWait bounds how late an old quarter is removed after the clock was set forward or the machine was suspended.
	maxWait = 24 * time.Hour
)

// Settings are for tests.
type Settings struct {
	// Delay is how long changes of findings are gathered. Default: 10 seconds.
	Delay time.Duration
	// Clock provides the current time. Default: one that is not far ahead of the API server's.
	Clock clock.PassiveClock
}

// Reconciler keeps the FindingTrends of Projects.
type Reconciler struct {
	reconcile.Base
	// waits measures how long a project's rows have waited for statuses.
	waits reconcile.Since
}

// SetupWithManager adds the controller of FindingTrends to the manager.
func (s Settings) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	r := &Reconciler{Base: reconcile.NewBase(mgr)}
	if s.Clock != nil {
		r.Clock = s.Clock
	}
	delay := cmp.Or(s.Delay, gatherDelay)
	if err := errors.Join(
		index.AddReference(ctx, mgr, &v1alpha1.Finding{}, index.Project, projectOfFinding),
		index.AddReference(ctx, mgr, &v1alpha1.FindingTrend{}, index.Project, projectOfTrend),
	); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("findingtrend").
		For(&v1alpha1.Project{}, builder.WithPredicates(watch.CreatedOrDeleted)).
		Watches(&v1alpha1.Finding{}, watch.EnqueueAfter(delay, watch.Reference(projectOfFinding)),
			builder.WithPredicates(watch.NewSinceStart, countsOtherwise)).
		// Our own writes need no reconcile.
		Watches(&v1alpha1.FindingTrend{},
			handler.Funcs{DeleteFunc: watch.EnqueueAfter(delay, watch.Reference(projectOfTrend)).Delete}).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on. Another controller writes the project's status.
type scope = reconcile.Scope[*v1alpha1.Project, *v1alpha1.ProjectStatus]

func newScope() *scope { return reconcile.NewScope(&v1alpha1.Project{}) }

// Reconcile updates a project's rows, and removes quarters past their retention.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcile.Loop[*scope]{
		Base: r.Base, New: newScope, Phases: []reconcile.Phase[*scope]{r.keepRows},
		Gone: r.waits.Forget,
	}.Run(ctx, req)
}

func projectOfFinding(finding *v1alpha1.Finding) v1alpha1.ResourceName {
	return finding.Spec.ProjectRef.Name
}

func projectOfTrend(trend *v1alpha1.FindingTrend) v1alpha1.ResourceName {
	return trend.Spec.ProjectRef.Name
}
