package kube

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// Trim drops managedFields and the annotations of others from an object. Whoever may write the object can make both
// larger than the rest of it: `kubectl apply` alone may add 256 KiB. An object that was trimmed must not be stored
// as a whole.
func Trim(object metav1.Object) {
	object.SetManagedFields(nil)
	annotations := object.GetAnnotations()
	maps.DeleteFunc(annotations, func(name, _ string) bool { return !strings.HasPrefix(name, v1alpha1.GroupName+"/") })
	if len(annotations) == 0 {
		object.SetAnnotations(nil)
	}
}
