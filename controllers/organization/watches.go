package organization

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

// ofNamespace returns the organization of a Namespace object.
func ofNamespace(object client.Object) []ctrl.Request { return watch.OrganizationOf(object.GetName()) }

var findingsDiffer = watch.Updates(func(before, after *v1alpha1.Repository) bool {
	return before.Status.Counts.Findings != after.Status.Counts.Findings
})

// managed selects objects with our label, or that had it before the update.
var managed = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return isManaged(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool { return isManaged(e.ObjectOld) || isManaged(e.ObjectNew) },
	DeleteFunc: func(e event.DeleteEvent) bool { return isManaged(e.Object) },
}

// managedMeta returns the metadata of a new object with our label.
func managedMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy},
	}
}

func isManaged(object client.Object) bool {
	return object.GetLabels()[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy
}
