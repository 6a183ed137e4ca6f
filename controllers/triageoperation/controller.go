// Package triageoperation carries out TriageOperations: it selects their findings, previews their effect, and applies
// them part by part once they are committed.
package triageoperation

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
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
	// handOver is when an operation is requeued after a part, so that others get their turn.
	handOver = 5 * time.Millisecond
	// lookAgain is when an operation that waits for another is checked again.
	lookAgain = time.Second
)

// Reconciler reconciles TriageOperations.
type Reconciler struct {
	reconcile.Base
	pager *ledger.Pager
	// refused holds since when the API server refuses an operation's writes of a finding or a part, by the operation's
	// name.
	refused sync.Map
	// as returns a client that writes an operation's decisions in that namespace.
	as func(namespace string) (rest.Interface, error)
}

// SetupWithManager adds the controller of TriageOperations to the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	pager, err := ledger.NewOperationPager(ctx, mgr)
	if err != nil {
		return err
	}
	r := &Reconciler{Base: reconcile.NewBase(mgr), pager: pager, as: executors(mgr.GetConfig())}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.TriageOperation{}, builder.WithPredicates(watch.SpecChanged)).
		Watches(&v1alpha1.Finding{}, pager.Findings()).
		Watches(&v1alpha1.WebhookEndpoint{}, pager.Endpoints()).
		WithOptions(options).
		Complete(r)
}

// executors returns clients that impersonate the ServiceAccount that may only triage in a
// namespace.
func executors(config *rest.Config) func(namespace string) (rest.Interface, error) {
	return func(namespace string) (rest.Interface, error) {
		config := rest.CopyConfig(config)
		config.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:" + namespace + ":" + v1alpha1.OperationsServiceAccount,
		}
		return kube.NewClient(config)
	}
}

type scope = reconcile.Scope[*v1alpha1.TriageOperation, *v1alpha1.TriageOperationStatus]

func newScope() *scope { return reconcile.NewScope(&v1alpha1.TriageOperation{}) }

// Reconcile selects an operation's findings once, and works through one part of them.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcile.Loop[*scope]{
		Base: r.Base, New: newScope,
		Phases: []reconcile.Phase[*scope]{r.afterEnd, r.awaitTurn, r.selectFindings, r.workThroughPart, r.complete},
		Stored: r.announce,
		Gone:   func(name types.NamespacedName) { r.refused.Delete(name) },
	}.Run(ctx, req)
}

// others returns the namespace's other operations.
func (r *Reconciler) others(ctx context.Context, s *scope) ([]v1alpha1.TriageOperation, error) {
	list := &v1alpha1.TriageOperationList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the triage operations: %w", err)
	}
	var out []v1alpha1.TriageOperation
	for i := range list.Items {
		if list.Items[i].Name != s.Object.Name {
			out = append(out, list.Items[i])
		}
	}
	return out, nil
}

// awaitTurn lets only one operation per organization select or work at a time, oldest first: an organization with many
// operations takes no more controller time than one with a single operation.
func (r *Reconciler) awaitTurn(ctx context.Context, s *scope) error {
	if s.Status.SelectedAt != nil && !s.Object.Spec.Commit {
		return nil // it is a preview
	}
	others, err := r.others(ctx, s)
	if err != nil {
		return err
	}
	first := before(s.Object, others)
	if first == nil {
		return nil
	}
	if s.Status.Phase == "" {
		s.Status.Phase = v1alpha1.OperationSelecting
	}
	inProgress(s, fmt.Sprintf("The operation %q of the organization is running: this one starts after it.", first.Name))
	s.RequeueAfter(lookAgain)
	s.Stop()
	return nil
}

// before returns an operation whose turn comes before the given one; nil if there is none.
func before(operation *v1alpha1.TriageOperation, others []v1alpha1.TriageOperation) *v1alpha1.TriageOperation {
	ended := map[string]bool{operation.Name: false}
	for i := range others {
		ended[others[i].Name] = others[i].Status.CompletedAt != nil
	}
	for i := range others {
		other := &others[i]
		// An undo waits for the operation that it undoes, so that operation must not wait for the undo: neither
		// would end.
		undone, known := ended[string(other.Spec.Undo)]
		if waits := known && !undone; busy(other) && !waits && earlier(other, operation) {
			return other
		}
	}
	return nil
}

// busy reports whether the operation selects its findings or works through them. A preview does not block others.
func busy(o *v1alpha1.TriageOperation) bool {
	switch o.Status.Phase {
	case "", v1alpha1.OperationSelecting, v1alpha1.OperationRunning:
		return o.DeletionTimestamp.IsZero()
	case v1alpha1.OperationPreview, v1alpha1.OperationCompleted, v1alpha1.OperationFailed:
	}
	return false
}

func earlier(a, b *v1alpha1.TriageOperation) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}
