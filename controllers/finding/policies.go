package finding

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/triagepolicy"
)

// nowInterval is how often policies whose expression depends on the time are looked at again.
const nowInterval = time.Hour

// decidesOtherwise passes over what does not change what a policy decides: its counts, and a spec that is yet to come
// into force. A policy that is created decides nothing until its status says so.
var decidesOtherwise = predicate.Funcs{
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
	projectFactsDiffer    = predicate.And(notAtStart, watch.Updates(triagepolicy.ProjectFactsDiffer))
	repositoryFactsDiffer = predicate.And(notAtStart, watch.Updates(triagepolicy.RepositoryFactsDiffer))
	notAtStart            = predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
)

// concerned selects the findings that a change of the object concerns.
type concerned func(client.Object) []client.ListOption

func ofNamespace(client.Object) []client.ListOption { return nil }

func ofProject(project client.Object) []client.ListOption {
	return []client.ListOption{client.MatchingFields{referencesIndex: refersToProject + project.GetName()}}
}

func ofRepository(repository client.Object) []client.ListOption {
	return []client.ListOption{client.MatchingFields{referencesIndex: refersToRepository + repository.GetName()}}
}

// rejudge enqueues the findings about which policies decide otherwise than their status says, and no others.
func (r *Reconciler) rejudge(which concerned) handler.EventHandler {
	enqueue := func(ctx context.Context, object client.Object, q watch.Queue) {
		requests, err := r.otherVerdicts(ctx, object.GetNamespace(), which(object))
		if err != nil {
			// The cache answers, or the manager is about to stop; there is nobody to return an error to.
			ctrl.LoggerFrom(ctx).Error(err, "list the findings that policies decide about otherwise")
		}
		watch.AddAfter(q, 0, requests)
	}
	changes := watch.Changes(func(ctx context.Context, change watch.Change, q watch.Queue) {
		enqueue(ctx, change.Object(), q)
	}).(handler.Funcs)
	changes.GenericFunc = func(ctx context.Context, e event.GenericEvent, q watch.Queue) { enqueue(ctx, e.Object, q) }
	return changes
}

func (r *Reconciler) otherVerdicts(ctx context.Context, namespace string, which []client.ListOption) ([]ctrl.Request,
	error) {
	judge, err := r.policies.Judge(ctx, namespace, r.Clock.Now())
	if err != nil {
		return nil, err
	}
	list := &v1alpha1.FindingList{}
	err = r.Client.List(ctx, list, append(which, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)...)
	if err != nil {
		return nil, err
	}
	verdict := judge.Of(ctx)
	var out []ctrl.Request
	for i := range list.Items {
		finding := &list.Items[i]
		// Also one that has no status yet: the reconcile that makes it may have begun before the policies changed.
		if findingstate.Undecided(finding) && !findingstate.SameVerdict(verdict(finding), finding.Status.Verdict) {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(finding)})
		}
	}
	return out, judge.Err()
}

// ticker has the findings of namespaces looked at again in which what a policy decides depends on the time.
type ticker struct {
	cache  client.Reader
	events chan event.GenericEvent
}

func newTicker(cache client.Reader) *ticker {
	return &ticker{cache: cache, events: make(chan event.GenericEvent)}
}

func (t *ticker) source(to handler.EventHandler) source.Source { return source.Channel(t.events, to) }

// Start ticks until the context ends. Only the replica that leads is started.
func (t *ticker) Start(ctx context.Context) error {
	timer := time.NewTicker(nowInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			if err := t.tick(ctx); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "look at the policies that depend on the time")
			}
		}
	}
}

func (t *ticker) tick(ctx context.Context) error {
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
