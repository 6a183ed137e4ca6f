package project

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/tally"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// Selectable fields by which children name their parents; in the cache, indexes of that name.
const (
	projectField    = "spec.projectRef.name"
	repositoryField = "spec.repositoryRef.name"
)

// The classes that findings are counted in. Nobody is shown the number of the closed ones, but
// a removal has to remove them too.
const (
	openClass   = "open"
	closedClass = "closed"
)

// everyFinding counts a finding for its project, the closed ones apart.
func everyFinding(object client.Object) (tally.Share, bool) {
	finding := object.(*v1alpha1.Finding)
	share := tally.Share{
		Owner: types.NamespacedName{Namespace: finding.Namespace, Name: string(finding.Spec.ProjectRef.Name)},
		Class: openClass,
	}
	if findingstate.State(&finding.Spec) == v1alpha1.FindingStateClosed {
		share.Class = closedClass
	}
	return share, true
}

func projectOfScan(object client.Object) []string {
	return []string{string(object.(*v1alpha1.Scan).Spec.ProjectRef.Name)}
}

func repositoryOfProject(object client.Object) []string {
	return []string{string(object.(*v1alpha1.Project).Spec.RepositoryRef.Name)}
}

// worthReconciling passes over our own status writes. Each would bring the next look at once,
// which would find the next few findings of an import counted and write again: no count would
// ever be held back. The one that it lets through is that of a project that begins to wait
// for its repository, which may have come while that was being written.
var worthReconciling = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.Project), e.ObjectNew.(*v1alpha1.Project)
		return waits(after) && !waits(before) || !slices.Equal(before.Finalizers, after.Finalizers)
	},
	// Create and Delete are the other predicate's to judge.
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
})

func waits(project *v1alpha1.Project) bool {
	ready := v1alpha1.FindCondition(project.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonRepositoryNotFound
}

// createdOrDeleted passes over updates: a project refers to a name, not to what is behind it.
var createdOrDeleted = predicate.Funcs{
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

// scanOwner wakes the project that a scan is of.
func scanOwner(_ context.Context, object client.Object) []reconcile.Request {
	scan := object.(*v1alpha1.Scan)
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: scan.Namespace, Name: string(scan.Spec.ProjectRef.Name),
	}}}
}

// projectsOf wakes the projects of a repository that has come or gone.
func (r *Reconciler) projectsOf(ctx context.Context, repository client.Object) []reconcile.Request {
	projects := &v1alpha1.ProjectList{}
	if err := r.client.List(ctx, projects, client.InNamespace(repository.GetNamespace()),
		client.MatchingFields{repositoryField: repository.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		// The cache answers or the manager is on its way out; there is nobody to give an error to.
		ctrl.LoggerFrom(ctx).Error(err, "list the projects of a repository that has come or gone", "repository", repository.GetName())
		return nil
	}
	requests := make([]reconcile.Request, len(projects.Items))
	for i := range projects.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&projects.Items[i])
	}
	return requests
}
