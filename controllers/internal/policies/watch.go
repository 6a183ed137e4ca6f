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

// NowInterval is how often policies whose expression depends on the time are looked at again.
const NowInterval = time.Hour

// DecidesOtherwise passes over what does not change what a policy decides: its counts, and a spec that is yet to come
// into force. A policy that is created decides nothing until its status says so.
var DecidesOtherwise = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList && decides(e.Object) != 0 },
	UpdateFunc: func(e event.UpdateEvent) bool { return decides(e.ObjectOld) != decides(e.ObjectNew) },
	DeleteFunc: func(e event.DeleteEvent) bool { return decides(e.Object) != 0 },
}

// decides is the generation of the policy that is in force; 0 where none is.
func decides(object client.Object) int64 {
	policy, is := object.(*v1alpha1.TriagePolicy)
	if !is || policy.Status.InForce == nil || !policy.DeletionTimestamp.IsZero() {
		return 0
	}
	return policy.Status.InForce.Generation
}

// What policies read of a project and of a repository is a fact of its findings.
var (
	ProjectFactsDiffer    = predicate.And(notAtStart, watch.Updates(triagepolicy.ProjectFactsDiffer))
	RepositoryFactsDiffer = predicate.And(notAtStart, watch.Updates(triagepolicy.RepositoryFactsDiffer))
	notAtStart            = predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
)

// Ticker has namespaces looked at again in which what a policy decides depends on the time.
type Ticker struct {
	cache  client.Reader
	clock  clock.WithTicker
	events chan event.GenericEvent
}

// NewTicker returns one that reads policies from that cache. Add it to the manager.
func NewTicker(cache client.Reader, clock clock.WithTicker) *Ticker {
	return &Ticker{cache: cache, clock: clock, events: make(chan event.GenericEvent)}
}

// Source calls the handler with a policy of each such namespace, hourly.
func (t *Ticker) Source(to handler.EventHandler) source.Source { return source.Channel(t.events, to) }

// Start ticks until the context ends. Only the replica that leads is started.
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
		if program, err := triagepolicy.Compile(policy.Status.InForce.Spec.Match); err != nil || !program.UsesNow() {
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
