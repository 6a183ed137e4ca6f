package project

import (
	"context"

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

// openFinding counts a finding for its project unless it is closed.
func openFinding(object client.Object) (tally.Share, bool) {
	finding := object.(*v1alpha1.Finding)
	owner := types.NamespacedName{Namespace: finding.Namespace, Name: string(finding.Spec.ProjectRef.Name)}
	return tally.Share{Owner: owner}, findingstate.State(&finding.Spec) != v1alpha1.FindingStateClosed
}

func projectOfScan(object client.Object) []string {
	return []string{string(object.(*v1alpha1.Scan).Spec.ProjectRef.Name)}
}

func repositoryOfProject(object client.Object) []string {
	return []string{string(object.(*v1alpha1.Project).Spec.RepositoryRef.Name)}
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
