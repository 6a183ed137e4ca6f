package readmodel

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// listWatch is what the reflector of a kind lists and watches. It renders each object of a list as it comes.
//
// It tells the model that the API server has answered, also where that has nothing to say: the watch
// of a kind that nobody changes begins anew every few minutes.
func (m *Model) listWatch(kind kind, from kube.Source, object kube.Object) *kube.ListWatch {
	known, _ := kube.KindOf(object)
	return kube.NewListWatch(kube.ListWatchOptions{
		Kind: known, From: from, Unreadables: m.unreadables,
		Trim:  m.rendered,
		Heard: m.heard[kind],
	})
}

// rendered is an object as the model takes it, without what will not be needed, so that a list of
// 100,000 objects does not need twice its room.
func (m *Model) rendered(object kube.Object) runtime.Object {
	if isObserved(object) {
		object.SetManagedFields(nil)
	}
	return m.preRender(object).(runtime.Object) // the object itself, or a preparedFinding
}

// isObserved reports whether the time of the last change is in status, so that nobody asks
// managedFields.
func isObserved(object runtime.Object) bool {
	switch o := object.(type) {
	case *v1alpha1.Finding:
		return o.Status.UpdatedAt != nil && o.Status.ObservedGeneration == o.Generation
	case *v1alpha1.Repository:
		return o.Status.UpdatedAt != nil && o.Status.ObservedGeneration == o.Generation
	case *v1alpha1.Project:
		return o.Status.UpdatedAt != nil && o.Status.ObservedGeneration == o.Generation
	case *v1alpha1.Review:
		return o.Status.UpdatedAt != nil && o.Status.ObservedGeneration == o.Generation
	case *v1alpha1.ReviewIssue:
		return o.Status.UpdatedAt != nil && o.Status.ObservedGeneration == o.Generation
	default:
		return true // of organizations, deliveries, scans and trends no such time is shown
	}
}
