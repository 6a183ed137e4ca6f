// Package controllers holds what the manager must be given for the controllers below it.
package controllers

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// CacheOptions keeps out of the manager's cache what no controller reads. A third of a small
// object is managedFields, and there may be 100,000 findings.
//
// What comes out of this cache must never be sent back with an Update: it would wipe the
// managedFields, and with them who owns which field. Patches are safe.
func CacheOptions() cache.Options {
	whoAndWhen := cache.ByObject{Transform: dropFieldSets}
	// Of other people's objects there may be many, and these can be secret.
	madeByUs := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})}
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}:         madeByUs,
			&corev1.ServiceAccount{}: madeByUs,
			&rbacv1.RoleBinding{}:    madeByUs,
			&corev1.ResourceQuota{}:  madeByUs,
			// updatedAt is derived from when each manager last wrote, and so is when a scan ended.
			&v1alpha1.Finding{}:     whoAndWhen,
			&v1alpha1.Project{}:     whoAndWhen,
			&v1alpha1.Repository{}:  whoAndWhen,
			&v1alpha1.Review{}:      whoAndWhen,
			&v1alpha1.ReviewIssue{}: whoAndWhen,
			&v1alpha1.Scan{}:        whoAndWhen,
		},
	}
}

// dropFieldSets leaves of managedFields who wrote and when, and drops which fields.
func dropFieldSets(in any) (any, error) {
	object, err := meta.Accessor(in)
	if err != nil {
		return in, nil //nolint:nilerr // a tombstone of the informer, not an object: nothing to drop
	}
	if isSlim(object.GetManagedFields()) {
		// Seen before: it is in the cache by now, and others read it.
		return in, nil
	}
	slim := make([]metav1.ManagedFieldsEntry, 0, len(object.GetManagedFields()))
	for _, entry := range object.GetManagedFields() {
		entry.FieldsType, entry.FieldsV1 = "", nil
		slim = append(slim, entry)
	}
	object.SetManagedFields(slim)
	return in, nil
}

func isSlim(entries []metav1.ManagedFieldsEntry) bool {
	for i := range entries {
		if entries[i].FieldsV1 != nil {
			return false
		}
	}
	return true
}
