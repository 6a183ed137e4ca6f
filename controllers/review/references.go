package review

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Selectable fields by which children name their parents; in the cache, indexes of that name.
const (
	reviewField     = "spec.reviewRef.name"
	repositoryField = "spec.repositoryRef.name"
)

func reviewOfIssue(object client.Object) []string {
	return []string{string(object.(*v1alpha1.ReviewIssue).Spec.ReviewRef.Name)}
}

func repositoryOfReview(object client.Object) []string {
	return []string{string(object.(*v1alpha1.Review).Spec.RepositoryRef.Name)}
}

// worthReconciling passes over our own status writes, each of which would bring the next look
// at once, in the middle of an import. The one that it lets through is that of a review that
// begins to wait for its repository, which may have come while that was being written.
var worthReconciling = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.Review), e.ObjectNew.(*v1alpha1.Review)
		return waits(after) && !waits(before) || !slices.Equal(before.Finalizers, after.Finalizers)
	},
	// Create and Delete are the other predicate's to judge.
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
})

func waits(review *v1alpha1.Review) bool {
	ready := v1alpha1.FindCondition(review.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonRepositoryNotFound
}

// createdOrDeleted passes over updates: a review refers to a name, not to what is behind it.
var createdOrDeleted = predicate.Funcs{
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

// countLater has a review reconciled a delay after an issue of it has come, changed or gone.
// The queue holds a review once however often it is added, so an import costs a reconcile a
// delay and not one an issue. An issue's status counts for nothing: the counters are derived
// from the specs, as the status is.
func countLater(delay time.Duration) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	later := func(object client.Object, q queue) {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{
			Namespace: object.GetNamespace(), Name: string(object.(*v1alpha1.ReviewIssue).Spec.ReviewRef.Name),
		}}, delay)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList { // At the start every review is reconciled on its own account.
				later(e.Object, q)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				later(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { later(e.Object, q) },
	}
}

// reviewsOf wakes the reviews of a repository that has come or gone.
func (r *Reconciler) reviewsOf(ctx context.Context, repository client.Object) []reconcile.Request {
	reviews := &v1alpha1.ReviewList{}
	if err := r.client.List(ctx, reviews, client.InNamespace(repository.GetNamespace()),
		client.MatchingFields{repositoryField: repository.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		// The cache answers or the manager is on its way out; there is nobody to give an error to.
		ctrl.LoggerFrom(ctx).Error(err, "list the reviews of a repository that has come or gone", "repository", repository.GetName())
		return nil
	}
	requests := make([]reconcile.Request, len(reviews.Items))
	for i := range reviews.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&reviews.Items[i])
	}
	return requests
}
