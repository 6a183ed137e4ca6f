package repository

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/tally"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
)

// repositoryField is the selectable field by which children name their repository; in the
// cache, an index of that name.
const repositoryField = "spec.repositoryRef.name"

// closedClass is that of the closed findings, which are no category's: nobody is shown their
// number, but a removal has to remove them too.
const closedClass = "closed"

// everyFinding counts a finding for its repository, by category, and apart from them if it is closed.
func everyFinding(object client.Object) (tally.Share, bool) {
	finding := object.(*v1alpha1.Finding)
	share := tally.Share{
		Owner: types.NamespacedName{Namespace: finding.Namespace, Name: string(finding.Spec.RepositoryRef.Name)},
		Class: string(finding.Spec.Category),
	}
	if findingstate.State(&finding.Spec) == v1alpha1.FindingStateClosed {
		share.Class = closedClass
	}
	return share, true
}

// everyProject counts a project for its repository.
func everyProject(object client.Object) (tally.Share, bool) {
	project := object.(*v1alpha1.Project)
	return tally.Share{
		Owner: types.NamespacedName{Namespace: project.Namespace, Name: string(project.Spec.RepositoryRef.Name)},
	}, true
}

// everyReview counts a review for its repository.
func everyReview(object client.Object) (tally.Share, bool) {
	review := object.(*v1alpha1.Review)
	return tally.Share{
		Owner: types.NamespacedName{Namespace: review.Namespace, Name: string(review.Spec.RepositoryRef.Name)},
	}, true
}

// worthReconciling passes over our own status writes. Each would bring the next look at once,
// which would find the next few findings of an import counted and write again: no count would
// ever be held back.
var worthReconciling = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers())
	},
	// Create and Delete are the other predicate's to judge.
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
})

func repositoryOfScan(object client.Object) []string {
	return []string{string(object.(*v1alpha1.Scan).Spec.RepositoryRef.Name)}
}

// scanOwner wakes the repository that a scan is of.
func scanOwner(_ context.Context, object client.Object) []reconcile.Request {
	scan := object.(*v1alpha1.Scan)
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: scan.Namespace, Name: string(scan.Spec.RepositoryRef.Name),
	}}}
}
