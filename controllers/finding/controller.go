// Package finding derives a finding's status from its spec: its state, when it last changed, its
// transitions, and whether the objects it refers to exist. It makes webhook deliveries of the
// transitions, and writes the audit log of the decisions in spec.triage.
package finding

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/audit"
	"github.com/appsec-dev/findings-operator/controllers/internal/implied"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/controllers/internal/policies"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/apitime"
)

// Reconciler reconciles Findings.
type Reconciler struct {
	reconcile.Base
	ledger     *ledger.Ledger
	judgements judgements
	// audit logs each decision stored in spec.triage, but not verdicts.
	audit audit.Log
	// implied is Settings.Implied.
	implied *implied.Statuses
}

// Settings of the controller of Findings.
type Settings struct {
	// Implied, if not nil, holds the findings for which no status is stored: they are open and unchanged since their
	// creation, and each webhook endpoint that existed then has a delivery of the creation, or gets one after its backlog.
	Implied *implied.Statuses
}

// NewImplied returns a value for Settings.Implied. The controllers of Scans and of retention must share it.
func NewImplied() *implied.Statuses { return implied.NewStatuses() }

// SetupWithManager adds the controller of Findings to the manager.
func (s Settings) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	return setUp(ctx, mgr, options, s, apitime.Clock{})
}

func setUp(ctx context.Context, mgr ctrl.Manager, options controller.Options, settings Settings,
	clock clock.WithTicker) error {
	deliveries, err := ledger.New(ctx, mgr, ledger.Finding)
	if err != nil {
		return err
	}
	deliveries.Implied = settings.Implied
	r := &Reconciler{
		Base:    reconcile.NewBase(mgr),
		ledger:  deliveries,
		audit:   audit.Log{To: mgr.GetLogger().WithName("audit"), Kind: "finding", Subject: "A finding"},
		implied: settings.Implied,
	}
	r.Clock = clock
	if err := errors.Join(
		index.Add(ctx, mgr, &v1alpha1.Finding{}, referencesIndex, referencesOf),
		index.Add(ctx, mgr, &v1alpha1.ReviewIssue{}, decidedIndex, decidedKeyOf),
	); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Finding{}, builder.WithPredicates(r.scannerEvents())).
		Watches(&v1alpha1.Finding{}, watch.EnqueueFirst(), builder.WithPredicates(r.decisionEvents())).
		Watches(&v1alpha1.Repository{}, r.enqueueFindings(waitsForRepository, refersToRepository),
			builder.WithPredicates(watch.CreatedOrDeleted)).
		Watches(&v1alpha1.Project{}, r.enqueueFindings(waitsForProject, refersToProject),
			builder.WithPredicates(createdDeletedOrMoved)).
		Watches(&v1alpha1.Project{}, r.rejudge(ctx, policies.EachObject, ofProject),
			builder.WithPredicates(policies.ProjectFactsDiffer)).
		Watches(&v1alpha1.Repository{}, r.rejudge(ctx, policies.EachObject, ofRepository),
			builder.WithPredicates(policies.RepositoryFactsDiffer)).
		Watches(&v1alpha1.TriagePolicy{}, r.rejudge(ctx, policies.WholeNamespace, ofNamespace),
			builder.WithPredicates(policies.DecidesOtherwise)).
		Watches(&v1alpha1.ReviewIssue{}, r.rejudgeIssue(ctx), builder.WithPredicates(issueDecisionChanged)).
		Watches(&v1alpha1.Finding{}, r.rejudgeAlike(ctx), builder.WithPredicates(resultChanged)).
		WatchesRawSource(policies.Hourly(r.Client, clock, r.rejudge(ctx, policies.WholeNamespace, ofNamespace))).
		WatchesRawSource(source.Func(r.enqueueRequested)).
		Watches(&v1alpha1.WebhookEndpoint{}, deliveries.Endpoints()).
		Watches(&v1alpha1.WebhookEndpoint{}, r.enqueueForNewEndpoint(),
			builder.WithPredicates(watch.NewSinceStart, watch.CreatedOrDeleted)).
		Watches(&v1alpha1.WebhookDelivery{}, deliveries.Pages()).
		Watches(&v1alpha1.WebhookDelivery{}, r.onLostDelivery()).
		Watches(&v1alpha1.Scan{}, deliveries.ScansGone()).
		Watches(&v1alpha1.TriageOperation{}, deliveries.OperationsGone()).
		WithOptions(options).
		Complete(r)
}

// scope is what one reconcile works on.
type scope = reconcile.Scope[*v1alpha1.Finding, *v1alpha1.FindingStatus]

func newScope() *scope { return reconcile.NewScope(&v1alpha1.Finding{}) }

// Reconcile updates the status of one finding, and makes the deliveries that its changes require. It sends no Events:
// each would be another write, a scan can close thousands of findings at once, and the transitions keep the same
// information for longer.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcile.Loop[*scope]{
		Base: r.Base, New: newScope, Ledger: r.ledger,
		Phases: []reconcile.Phase[*scope]{
			r.observeSpec, r.nameCommitter, r.auditTriage, r.observeReferences, r.leaveImplied,
		},
		Stored: r.forgetRecorded,
		Gone: func(finding types.NamespacedName) {
			r.judgements.forget(finding)
			r.implied.Forget(finding)
		},
	}.Run(ctx, req)
}
