package policies

import (
	"context"
	"time"

	"k8s.io/utils/clock"
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

// DecidesOtherwise ignores changes that do not affect a policy's decisions: its counts, and a spec that is not in force
// yet. A new policy decides nothing until its status puts it into force.
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

// Hourly triggers a new evaluation for namespaces with policies that depend on the time: at each NowInterval it calls
// the handler with one policy per such namespace. It runs with its controller, so on the leader alone.
func Hourly(cache client.Reader, clock clock.WithTicker, to handler.EventHandler) source.Source {
	return source.Func(func(ctx context.Context, q watch.Queue) error {
		go func() {
			ticker := clock.NewTicker(NowInterval)
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C():
					err := eachDependingOnTime(ctx, cache, func(policy *v1alpha1.TriagePolicy) {
						to.Generic(ctx, event.GenericEvent{Object: policy}, q)
					})
					watch.LogError(ctx, err, "re-evaluate the policies that depend on the time")
				}
			}
		}()
		return nil
	})
}

// eachDependingOnTime calls do with one policy for each namespace that has policies which depend on the time.
func eachDependingOnTime(ctx context.Context, cache client.Reader, do func(*v1alpha1.TriagePolicy)) error {
	list := &v1alpha1.TriagePolicyList{}
	if err := cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i := range list.Items {
		policy := &list.Items[i]
		if seen[policy.Namespace] || policy.Status.InForce == nil {
			continue
		}
		if program, err := Compile(policy.Status.InForce.Spec.Match); err != nil || !program.UsesNow() {
			continue
		}
		seen[policy.Namespace] = true
		do(policy.DeepCopy())
	}
	return nil
}
