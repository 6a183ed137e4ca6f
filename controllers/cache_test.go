package controllers

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/test/harness"
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
	harness.Same(t, "managed fields", []metav1.ManagedFieldsEntry{entry}, finding.ManagedFields)
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
		harness.Same(t, fmt.Sprintf("%T", object), map[string]string{"note": "kept"}, object.GetAnnotations())
	}
}
