package controllers

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
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

	_, err := dropFieldSets(finding)
	harness.Must(t, err)
	harness.Same(t, "managed fields", []metav1.ManagedFieldsEntry{entry}, finding.ManagedFields)
	kept := &finding.ManagedFields[0]
	_, err = dropFieldSets(finding)
	harness.Must(t, err)
	if kept != &finding.ManagedFields[0] {
		t.Error("an object that is in the cache already was written to, while others may read it")
	}
}

func TestCacheDropsWhatKubectlApplyWroteDown(t *testing.T) {
	options := CacheOptions()
	for _, object := range []client.Object{&v1alpha1.Finding{}, &v1alpha1.APIKey{}} {
		object.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "note": "kept"})
		_, err := transformOf(options, object)(object)
		harness.Must(t, err)
		harness.Same(t, fmt.Sprintf("%T", object), map[string]string{"note": "kept"}, object.GetAnnotations())
	}
}

// Whoever may create a Secret in any namespace can give it our label, and megabytes of metadata.
func TestCacheHoldsOnlyTheOwnerOfASecret(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "APIKey", Name: "ci", UID: "u-1", Controller: new(true)}
	for _, kind := range []client.Object{&corev1.Secret{}, &corev1.ServiceAccount{}} {
		want := kube.MetadataOf(corev1.SchemeGroupVersion.WithKind("Secret"))
		want.Namespace, want.Name, want.UID, want.ResourceVersion = "org-acme", "ci-token", "u-2", "7"
		want.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
		want.OwnerReferences = []metav1.OwnerReference{owner}
		full := want.DeepCopy()
		full.Labels["note"], full.Annotations = "x", map[string]string{"note": "x"}
		full.OwnerReferences = append(full.OwnerReferences, metav1.OwnerReference{Name: "other"})
		full.Finalizers, full.ManagedFields = []string{"example.com/x"}, []metav1.ManagedFieldsEntry{{Manager: "m"}}
		got, err := transformOf(CacheOptions(), kind)(full)
		harness.Must(t, err)
		harness.Same(t, fmt.Sprintf("%T", kind), want, got)
		if full.Annotations == nil {
			t.Error("an object that may be in the cache already was written to, while others may read it")
		}
		want.OwnerReferences, full.OwnerReferences[0].Name = nil, strings.Repeat("x", 1<<20)
		got, err = transformOf(CacheOptions(), kind)(full)
		harness.Must(t, err)
		harness.Same(t, fmt.Sprintf("%T with an owner that cannot exist", kind), want, got)
	}
}

// Whoever administers any namespace can create a RoleBinding with our label, and megabytes of the rest.
func TestCacheHoldsOfARoleBindingOnlyWhatIsCompared(t *testing.T) {
	want := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: "findings-scanner", UID: "u-1", ResourceVersion: "7",
			Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "findings-scanner"},
		Subjects: []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "appsec:acme:scanners"},
			{Kind: rbacv1.ServiceAccountKind, Namespace: "org-acme", Name: "scanner"},
			{Kind: rbacv1.ServiceAccountKind, Namespace: "org-acme", Name: "findings-uploads"},
		},
	}
	full := want.DeepCopy()
	full.GenerateName, full.Labels["note"], full.Annotations = "x", "x", map[string]string{"note": "x"}
	full.Finalizers, full.ManagedFields = []string{"example.com/x"}, []metav1.ManagedFieldsEntry{{Manager: "m"}}
	full.OwnerReferences = []metav1.OwnerReference{{Name: "other"}}
	transform := transformOf(CacheOptions(), full)
	got, err := transform(full)
	harness.Must(t, err)
	harness.Same(t, "what is ours", want, got)
	if full.Annotations == nil {
		t.Error("an object that may be in the cache already was written to, while others may read it")
	}
	long := strings.Repeat("x", 1<<10)
	full.Annotations["note"], full.GenerateName = long, long
	full.Name, full.RoleRef = long, rbacv1.RoleRef{APIGroup: long, Kind: long, Name: long}
	full.Subjects = slices.Repeat([]rbacv1.Subject{{APIGroup: long, Kind: long, Namespace: long, Name: long}}, 1000)
	got, err = transform(full)
	harness.Must(t, err)
	stored := harness.JSON(t, got)
	if len(stored) > 8<<10 || len(got.(*rbacv1.RoleBinding).Subjects) <= len(want.Subjects) {
		t.Errorf("of a RoleBinding with 1000 subjects %d bytes are kept: %.200s", len(stored), stored)
	}
}

// An operation writes the same comments into each of thousands of findings.
func TestCacheHoldsEqualCommentsOnce(t *testing.T) {
	const count, length = 1000, 10_000
	transform, cached := transformOf(CacheOptions(), &v1alpha1.Finding{}), make([]v1alpha1.Finding, count)
	before := harness.Heap()
	for i := range cached {
		finding := &cached[i]
		finding.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1("{}")}}
		finding.Spec.Triage.Comments = strings.Repeat("x", length)
		_, err := transform(finding)
		harness.Must(t, err)
		if i%100 == 0 {
			runtime.GC() // they stay shared
		}
	}
	if more := (harness.Heap() - before) / count; more > length/10 {
		t.Errorf("comments of %d characters take %d bytes per finding, a tenth at most is expected", length, more)
	}
	runtime.KeepAlive(cached)
}
