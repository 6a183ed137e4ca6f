// Package controllers configures the manager for the controllers in its subfolders.
package controllers

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// CacheOptions keeps data that no controller reads out of the manager's cache. A third of a small object is
// managedFields, and there may be 100,000 findings. The annotation last-applied-configuration may be as large as the
// object.
//
// Never Update an object read from this cache: that would wipe what the cache dropped, which is managedFields, with the
// field ownership, that annotation, and labels, finalizers and owners of a Secret, ServiceAccount or RoleBinding.
// Patches are safe, except merge patches that replace an incomplete list: the finalizers or owners of those three
// kinds.
func CacheOptions() cache.Options {
	whoAndWhen := cache.ByObject{Transform: dropFieldSets}
	// The cluster may have many objects of these kinds that are not ours, some of them secret.
	madeByUs := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})}
	metadataOfOurs, bindings := madeByUs, madeByUs
	metadataOfOurs.Transform, bindings.Transform = keepIdentity, keepAccess
	return cache.Options{
		DefaultTransform: dropUnread,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}:         metadataOfOurs,
			&corev1.ServiceAccount{}: metadataOfOurs,
			&rbacv1.RoleBinding{}:    bindings,
			// Kept whole, because its watch compares most of it. The administrator of a namespace may create all of the above
			// there, but no quota.
			&corev1.ResourceQuota{}: madeByUs,
			// updatedAt and the end of a scan are derived from the times in managedFields.
			&v1alpha1.Finding{}:     {Transform: shareComments(lru.New(recentComments))},
			&v1alpha1.Project{}:     whoAndWhen,
			&v1alpha1.Repository{}:  whoAndWhen,
			&v1alpha1.Review{}:      whoAndWhen,
			&v1alpha1.ReviewIssue{}: whoAndWhen,
			&v1alpha1.Scan{}:        whoAndWhen,
		},
	}
}

// FillCache makes the cache hold all kinds that controllers watch as soon as the manager starts it, before leader
// election, so that a standby replica can take over at once. Its controllers do not start their watches earlier
// (EnableWarmup), because these fill queues that nothing empties until the replica leads.
func FillCache(ctx context.Context, informers cache.Informers) error {
	for _, kind := range watched() {
		if _, err := informers.GetInformer(ctx, kind); err != nil {
			return fmt.Errorf("watch each %T: %w", kind, err)
		}
	}
	return nil
}

// watched returns an empty object of each kind that controllers watch.
func watched() []client.Object {
	core := corev1.SchemeGroupVersion
	return []client.Object{
		&corev1.Namespace{}, &corev1.ResourceQuota{}, &rbacv1.RoleBinding{},
		kube.MetadataOf(core.WithKind("Secret")), kube.MetadataOf(core.WithKind("ServiceAccount")),
		&v1alpha1.APIKey{}, &v1alpha1.Finding{}, &v1alpha1.FindingTrend{}, &v1alpha1.Organization{}, &v1alpha1.Project{},
		&v1alpha1.Repository{}, &v1alpha1.Review{}, &v1alpha1.ReviewIssue{}, &v1alpha1.Scan{}, &v1alpha1.TriageOperation{},
		&v1alpha1.TriagePolicy{}, &v1alpha1.WebhookDelivery{}, &v1alpha1.WebhookEndpoint{},
	}
}

// dropUnread drops managedFields and the annotation last-applied-configuration.
func dropUnread(in any) (any, error) {
	dropLastApplied(in)
	return cache.TransformStripManagedFields()(in)
}

// dropLastApplied drops the annotation last-applied-configuration. It does not write to an object that was transformed
// before, because that is in the cache, where others read it.
func dropLastApplied(in any) {
	object, err := meta.Accessor(in)
	if err != nil {
		return // a tombstone of the informer, not an object
	}
	if object.GetAnnotations()[corev1.LastAppliedConfigAnnotation] != "" {
		delete(object.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
}

// dropFieldSets drops the annotation last-applied-configuration and the field sets of managedFields, and keeps their
// managers and times.
func dropFieldSets(in any) (any, error) {
	dropLastApplied(in)
	object, err := meta.Accessor(in)
	if err != nil {
		return in, nil //nolint:nilerr // a tombstone of the informer, not an object: nothing to drop
	}
	if isSlim(object.GetManagedFields()) {
		// Already transformed, so it is in the cache, where others read it: do not write to it.
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

// keepIdentity drops all metadata of unbounded size except the operator's label and the controller. Whoever may create
// a Secret in any namespace can give it that label, together with more than a megabyte of other labels and annotations.
func keepIdentity(in any) (any, error) {
	object, is := in.(*metav1.PartialObjectMetadata)
	if !is {
		return in, nil // a tombstone of the informer, not an object
	}
	kept := &metav1.PartialObjectMetadata{TypeMeta: object.TypeMeta, ObjectMeta: identityOf(object.ObjectMeta)}
	if controller := metav1.GetControllerOf(object); controller != nil && mayBeOurs(controller) {
		kept.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	return kept, nil
}

// identityOf returns the metadata without annotations, finalizers, owners, managedFields, and labels other than the
// operator's. A RoleBinding's name may still be large.
func identityOf(object metav1.ObjectMeta) metav1.ObjectMeta {
	label, labelled := object.Labels[v1alpha1.ManagedByLabel]
	object.Labels, object.OwnerReferences = nil, nil
	object.Annotations, object.Finalizers, object.ManagedFields = nil, nil, nil
	if labelled {
		object.Labels = map[string]string{v1alpha1.ManagedByLabel: label}
	}
	return object
}

const (
	// maxSubjects is more than any of the operator's RoleBindings has, so that one with additional subjects still differs.
	maxSubjects = 4
	// maxAccessText is longer than any text in the operator's RoleBindings. An API server does not check the length of
	// these texts, not even of the name.
	maxAccessText = validation.DNS1123SubdomainMaxLength
)

// keepAccess is keepIdentity for a RoleBinding, and keeps enough of its role and subjects to compare them with those
// that the operator wrote. The administrator of any namespace can create one of more than a megabyte.
func keepAccess(in any) (any, error) {
	binding, is := in.(*rbacv1.RoleBinding)
	if !is {
		return in, nil // a tombstone of the informer, not an object
	}
	kept := &rbacv1.RoleBinding{TypeMeta: binding.TypeMeta, ObjectMeta: identityOf(binding.ObjectMeta)}
	kept.Name, kept.GenerateName = shortened(binding.Name), ""
	kept.RoleRef = rbacv1.RoleRef{
		APIGroup: shortened(binding.RoleRef.APIGroup), Kind: shortened(binding.RoleRef.Kind),
		Name: shortened(binding.RoleRef.Name),
	}
	for _, subject := range binding.Subjects[:min(len(binding.Subjects), maxSubjects)] {
		kept.Subjects = append(kept.Subjects, rbacv1.Subject{
			APIGroup: shortened(subject.APIGroup), Kind: shortened(subject.Kind),
			Name: shortened(subject.Name), Namespace: shortened(subject.Namespace),
		})
	}
	return kept, nil
}

// shortened returns the text, or a short text that also differs from all of the operator's.
func shortened(text string) string {
	if len(text) <= maxAccessText {
		return text
	}
	return strings.Clone(text[:maxAccessText])
}

// mayBeOurs reports whether the reference can name an object of this operator. It checks the lengths, which an API
// server does not.
func mayBeOurs(owner *metav1.OwnerReference) bool {
	return owner.APIVersion == v1alpha1.GroupVersion.String() &&
		len(owner.Kind) <= validation.DNS1123LabelMaxLength &&
		len(owner.Name) <= validation.DNS1123SubdomainMaxLength &&
		len(owner.UID) <= validation.DNS1123LabelMaxLength
}

// recentComments is how many different comments are kept for sharing: 40 kB each at most.
const recentComments = 256

// shareComments returns a function that calls dropFieldSets, and makes findings share equal comments: an operation
// writes the same comment to each finding of its set, megabytes in all.
func shareComments(recent *lru.Cache) toolscache.TransformFunc {
	return func(in any) (any, error) {
		if finding, ok := in.(*v1alpha1.Finding); ok && !isSlim(finding.ManagedFields) && finding.Spec.Triage.Comments != "" {
			comments := &finding.Spec.Triage.Comments
			if same, known := recent.Get(*comments); known {
				*comments = same.(string)
			} else {
				recent.Add(*comments, *comments)
			}
		}
		return dropFieldSets(in)
	}
}

// isSlim reports whether dropFieldSets has nothing to drop, as for an object in the cache.
func isSlim(entries []metav1.ManagedFieldsEntry) bool {
	for i := range entries {
		if entries[i].FieldsV1 != nil {
			return false
		}
	}
	return true
}
