package policies

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// NowInterval is how often policies whose expression depends on the time are evaluated again.
const NowInterval = time.Hour

// DecidesOtherwise passes over changes that do not affect a policy's decisions: its counts, and a spec that is not in
// force yet. A new policy decides nothing until its status puts it into force.
var DecidesOtherwise = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList && decides(e.Object) != 0 },
	UpdateFunc: func(e event.UpdateEvent) bool { return decides(e.ObjectOld) != decides(e.ObjectNew) },
	DeleteFunc: func(e event.DeleteEvent) bool { return decides(e.Object) != 0 },
}

// decides returns the policy's generation in force; 0 if there is none.
func decides(object client.Object) int64 {
	policy, is := object.(*v1alpha1.TriagePolicy)
	if !is || policy.Status.InForce == nil || !policy.DeletionTimestamp.IsZero() {
		return 0
	}
	return policy.Status.InForce.Generation
}

// The fields of projects and repositories that policies read are facts of their findings, and of review issues, which
// outlive a project.
var (
	ProjectFactsDiffer    = predicate.And(watch.NewSinceStart, watch.Updates(triagepolicy.ProjectFactsDiffer))
	RepositoryFactsDiffer = predicate.And(watch.NewSinceStart, watch.Updates(triagepolicy.RepositoryFactsDiffer))
)

// Ticker triggers a new evaluation for namespaces with policies that depend on the time.
type Ticker struct {
	cache  client.Reader
	clock  clock.WithTicker
	events chan event.GenericEvent
}

// NewTicker returns a Ticker that reads policies from the cache. Add it to the manager.
func NewTicker(cache client.Reader, clock clock.WithTicker) *Ticker {
	return &Ticker{cache: cache, clock: clock, events: make(chan event.GenericEvent)}
}

// Source calls the handler hourly, with one policy per such namespace.
func (t *Ticker) Source(to handler.EventHandler) source.Source { return source.Channel(t.events, to) }

// Start ticks until the context ends. It runs only on the leader.
func (t *Ticker) Start(ctx context.Context) error {
	timer := t.clock.NewTicker(NowInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C():
			if err := t.tick(ctx); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "look at the policies that depend on the time")
			}
		}
	}
}

func (t *Ticker) tick(ctx context.Context) error {
	list := &v1alpha1.TriagePolicyList{}
	if err := t.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i := range list.Items {
		policy := &list.Items[i]
		if seen[policy.Namespace] || policy.Status.InForce == nil {
			continue
		}
		if program, err := programs.compile(policy.Status.InForce.Spec.Match); err != nil || !program.UsesNow() {
			continue
		}
		seen[policy.Namespace] = true
		select {
		case <-ctx.Done():
			return nil
		case t.events <- event.GenericEvent{Object: policy.DeepCopy()}:
		}
	}
	return nil
}
