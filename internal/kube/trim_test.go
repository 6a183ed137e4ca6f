package kube

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
)

func TestATrimmedObjectKeepsOnlyItsOwnAnnotations(t *testing.T) {
	const foreign = "kubectl.kubernetes.io/last-applied-configuration"
	for _, tc := range []struct {
		reason            string
		annotations, want map[string]string
	}{
		{"none", nil, nil},
		{"only others'", map[string]string{foreign: "{}", "appsec.device/x": "y"}, nil},
		{"both", map[string]string{foreign: "{}", v1alpha1.BesideAnnotation: "a"}, map[string]string{v1alpha1.BesideAnnotation: "a"}},
	} {
		f := finding("f-1")
		f.Labels = map[string]string{"a": "b"}
		want := f.DeepCopy()
		want.Annotations, want.ManagedFields = tc.want, nil
		f.Annotations, f.ManagedFields = tc.annotations, []metav1.ManagedFieldsEntry{{Manager: "m"}}
		Trim(f)
		harness.Same(t, tc.reason, want, f)
	}
}
