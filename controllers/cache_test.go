package controllers

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

func TestCacheKeepsWhoWroteAndWhen(t *testing.T) {
	at := v1alpha1.NewTime(time.Unix(1000, 0))
	entry := metav1.ManagedFieldsEntry{
		Manager: "scanner/gosec", Operation: metav1.ManagedFieldsOperationApply, Time: &metav1.Time{Time: at.Time}, Subresource: "status",
	}
	full := entry
	full.FieldsType, full.FieldsV1 = "FieldsV1", metav1.NewFieldsV1(`{"f:spec":{}}`)
	finding := &v1alpha1.Finding{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{full}}}

	if _, err := dropFieldSets(finding); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]metav1.ManagedFieldsEntry{entry}, finding.ManagedFields); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	kept := &finding.ManagedFields[0]
	if _, err := dropFieldSets(finding); err != nil {
		t.Fatal(err)
	}
	if kept != &finding.ManagedFields[0] {
		t.Error("an object that is in the cache already was written to, while others may read it")
	}
}

func TestCacheDropsWhatKubectlApplyWroteDown(t *testing.T) {
	options := CacheOptions()
	for _, object := range []client.Object{&v1alpha1.Finding{}, &v1alpha1.APIKey{}} {
		transform := options.DefaultTransform
		for kind, its := range options.ByObject {
			if reflect.TypeOf(kind) == reflect.TypeOf(object) && its.Transform != nil {
				transform = its.Transform
			}
		}
		object.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "note": "kept"})
		if _, err := transform(object); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"note": "kept"}, object.GetAnnotations()); diff != "" {
			t.Errorf("%T: -want +got:\n%s", object, diff)
		}
	}
}
