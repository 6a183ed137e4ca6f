package readmodel

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/lastwrite"
)

// listWatch returns what the reflector of a kind lists and watches. It renders each object of a list as it
// arrives.
//
// It records each response of the API server, even one without changes: the watch of a kind that nobody changes
// restarts every few minutes.
func (m *Model) listWatch(k kind) *kube.ListWatch {
	return kube.NewListWatch(kube.ListWatchOptions{
		Kind: k.known(), From: m.source(k.known()), Unreadables: m.unreadables,
		Trim:      m.rendered,
		OnContact: m.recordContact[k],
	})
}

// rendered returns an object in the form in which the model stores it, without data that is not needed, so that
// a list of 100,000 objects does not need twice its memory.
func (m *Model) rendered(object kube.Object) runtime.Object {
	if isObserved(object) {
		object.SetManagedFields(nil)
	}
	return m.preRender(object).(runtime.Object) // the object itself, or a preparedFinding
}

// isObserved reports whether the time of the last change is known without managedFields: from the status, or because
// the finding has not changed since its creation.
func isObserved(object metav1.Object) bool {
	if finding, is := object.(*v1alpha1.Finding); is {
		return findingstate.IsRecorded(finding)
	}
	observed, dated := observedOf(object)
	return !dated || observed.Covers(object)
}

// observedOf returns what an object's status records about its last change. dated is false for the kinds that do not
// show when they changed last.
func observedOf(object metav1.Object) (observed lastwrite.Observed, dated bool) {
	switch o := object.(type) {
	case *v1alpha1.Finding:
		return lastwrite.Observed{Generation: o.Status.ObservedGeneration, UpdatedAt: o.Status.UpdatedAt}, true
	case *v1alpha1.Repository:
		return lastwrite.Observed{Generation: o.Status.ObservedGeneration, UpdatedAt: o.Status.UpdatedAt}, true
	case *v1alpha1.Project:
		return lastwrite.Observed{Generation: o.Status.ObservedGeneration, UpdatedAt: o.Status.UpdatedAt}, true
	case *v1alpha1.Review:
		return lastwrite.Observed{Generation: o.Status.ObservedGeneration, UpdatedAt: o.Status.UpdatedAt}, true
	case *v1alpha1.ReviewIssue:
		return lastwrite.Observed{Generation: o.Status.ObservedGeneration, UpdatedAt: o.Status.UpdatedAt}, true
	default:
		return observed, false
	}
}
