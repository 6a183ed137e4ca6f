package finding

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// referencesIndex is the cache index of findings by what they refer to and by what they wait for.
const referencesIndex = "references"

// The values under which the index keeps a finding; a resource's name follows.
const (
	refersToRepository = "repository/"
	refersToProject    = "project/"
	waitsForRepository = "waits-for-repository/"
	waitsForProject    = "waits-for-project/"
)

func referencesOf(object client.Object) []string {
	finding := object.(*v1alpha1.Finding)
	repository, project := string(finding.Spec.RepositoryRef.Name), string(finding.Spec.ProjectRef.Name)
	values := []string{refersToRepository + repository, refersToProject + project}
	switch missing(finding) {
	case v1alpha1.ReasonRepositoryNotFound:
		values = append(values, waitsForRepository+repository)
	case v1alpha1.ReasonProjectNotFound:
		values = append(values, waitsForProject+project)
	}
	return values
}

// missing is the reason for which the finding waits; "" where it waits for nothing.
func missing(finding *v1alpha1.Finding) string {
	ready := v1alpha1.FindCondition(finding.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return ""
	}
	switch ready.Reason {
	case v1alpha1.ReasonRepositoryNotFound, v1alpha1.ReasonProjectNotFound:
		return ready.Reason
	default:
		return ""
	}
}

// worthReconciling passes over our own status writes and other people's labels, of which
// there are as many as of changes. The one status change that it lets through is a finding
// that begins to wait: what it waits for may have come while that was being written, too
// early for the index to name the finding as waiting.
var worthReconciling = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.Finding), e.ObjectNew.(*v1alpha1.Finding)
		return missing(after) != "" && missing(after) != missing(before)
	},
	// Create and Delete are the other predicate's to judge.
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
})

// createdOrDeleted passes over updates: of a repository a finding needs the name alone.
var createdOrDeleted = predicate.Funcs{
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

// createdDeletedOrMoved passes over updates of a project that stays in its repository. The reference
// is immutable, so another one means that the project was deleted and created anew while the watch
// was interrupted: then both arrive as one update.
var createdDeletedOrMoved = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.Project), e.ObjectNew.(*v1alpha1.Project)
		return before.Spec.RepositoryRef != after.Spec.RepositoryRef
	},
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueueOnCreate wakes the findings that wait for what has come. Those that do not wait are
// left asleep: at a start every repository "comes", and it may have 100,000 findings.
func (r *Reconciler) enqueueOnCreate(prefix string) func(context.Context, event.CreateEvent, queue) {
	return func(ctx context.Context, e event.CreateEvent, q queue) { r.enqueue(ctx, prefix, e.Object, q) }
}

// enqueueOnUpdate enqueues the findings that refer to what has changed.
func (r *Reconciler) enqueueOnUpdate(prefix string) func(context.Context, event.UpdateEvent, queue) {
	return func(ctx context.Context, e event.UpdateEvent, q queue) { r.enqueue(ctx, prefix, e.ObjectNew, q) }
}

// enqueueOnDelete wakes the findings that refer to what has gone.
func (r *Reconciler) enqueueOnDelete(prefix string) func(context.Context, event.DeleteEvent, queue) {
	return func(ctx context.Context, e event.DeleteEvent, q queue) { r.enqueue(ctx, prefix, e.Object, q) }
}

func (r *Reconciler) enqueue(ctx context.Context, prefix string, object client.Object, q queue) {
	findings := &v1alpha1.FindingList{}
	if err := r.client.List(ctx, findings, client.InNamespace(object.GetNamespace()),
		client.MatchingFields{referencesIndex: prefix + object.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		// The cache answers or the manager is on its way out; there is nobody to give an error to.
		ctrl.LoggerFrom(ctx).Error(err, "list the findings of what has come or gone", "name", object.GetName())
		return
	}
	for i := range findings.Items {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{
			Namespace: findings.Items[i].Namespace, Name: findings.Items[i].Name,
		}})
	}
}
