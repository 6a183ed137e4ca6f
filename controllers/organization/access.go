package organization

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// scannerServiceAccount is the ServiceAccount in each organization's namespace with whose token a CI job imports scan
// results.
const scannerServiceAccount = "scanner"

// Each ClusterRole of the chart is bound by a RoleBinding of the same name. The cluster's identity
// provider assigns users to the groups.
const (
	viewerRole  = "findings-viewer"
	triagerRole = "findings-triager"
	scannerRole = "findings-scanner"
	adminRole   = "findings-admin"
	// operationsRole allows writing the decisions of TriageOperations.
	operationsRole = "findings-operations"
)

// Group is the name of the group that has a role in the organization: "viewers", "triagers",
// "scanners" or "admins".
func Group(organization, role string) string { return "appsec:" + organization + ":" + role }

// grantAccess creates or restores the ServiceAccount and RoleBindings of the organization.
func (r *Reconciler) grantAccess(ctx context.Context, s *scope) error {
	if err := r.ensureServiceAccount(ctx, s); err != nil {
		return fmt.Errorf("service account %s/%s: %w", s.namespace(), scannerServiceAccount, err)
	}
	for _, binding := range roleBindings(s.Object.Name, s.namespace()) {
		if err := r.ensureRoleBinding(ctx, s, binding); err != nil {
			return fmt.Errorf("role binding %s/%s: %w", binding.Namespace, binding.Name, err)
		}
	}
	return nil
}

// roleBindings returns the RoleBindings that an organization's namespace should have.
func roleBindings(organization, namespace string) []*rbacv1.RoleBinding {
	group := func(role string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: Group(organization, role)}
	}
	account := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	return []*rbacv1.RoleBinding{
		roleBinding(namespace, viewerRole, group("viewers")),
		roleBinding(namespace, triagerRole, group("triagers")),
		roleBinding(namespace, scannerRole, group("scanners"), account(scannerServiceAccount),
			account(v1alpha1.UploadsServiceAccount)),
		roleBinding(namespace, adminRole, group("admins")),
		roleBinding(namespace, operationsRole, account(v1alpha1.OperationsServiceAccount)),
	}
}

func roleBinding(namespace, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: managedMeta(namespace, role),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   subjects,
	}
}

func (r *Reconciler) ensureRoleBinding(ctx context.Context, s *scope, want *rbacv1.RoleBinding) error {
	have := &rbacv1.RoleBinding{}
	created, err := r.getOrCreate(ctx, want, have)
	if err != nil || created {
		return err
	}
	if have.RoleRef != want.RoleRef {
		// The reference to a role is immutable.
		return r.replaceRoleBinding(ctx, s, have, want)
	}
	if isManaged(have) && equality.Semantic.DeepEqual(have.Subjects, want.Subjects) {
		return nil
	}
	restored := have.DeepCopy()
	restored.Subjects = want.Subjects
	metav1.SetMetaDataLabel(&restored.ObjectMeta, v1alpha1.ManagedByLabel, v1alpha1.ManagedBy)
	if err := r.Client.Patch(ctx, restored, patch.Locked(have)); err != nil {
		return err
	}
	r.announceRestored(s, want)
	return nil
}

func (r *Reconciler) replaceRoleBinding(ctx context.Context, s *scope, have, want *rbacv1.RoleBinding) error {
	if err := r.Client.Delete(ctx, have, patch.AsSeen(have)); err != nil {
		return kube.IgnoreNotFound(err)
	}
	if err := r.Client.Create(ctx, want); err != nil {
		return err
	}
	r.announceRestored(s, want)
	return nil
}

// announceRestored reports a changed RoleBinding. Without a related object, the Event about the next one would only be
// added to the series of the first. With its UID, which a replacement changes, no Event would join a series.
func (r *Reconciler) announceRestored(s *scope, binding *rbacv1.RoleBinding) {
	related := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: binding.Namespace, Name: binding.Name}}
	r.Recorder.Eventf(s.Object, related, corev1.EventTypeWarning, "AccessRestored", "RestoreAccess",
		"RoleBinding %s in %s had been changed; changed it back", binding.Name, binding.Namespace)
}

// ensureServiceAccount checks only the labels. Everything else in a ServiceAccount, such as image pull secrets, belongs
// to its users.
func (r *Reconciler) ensureServiceAccount(ctx context.Context, s *scope) error {
	want := &corev1.ServiceAccount{ObjectMeta: managedMeta(s.namespace(), scannerServiceAccount)}
	have := kube.MetadataOf(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	created, err := r.getOrCreate(ctx, want, have)
	if err != nil || created || isManaged(have) {
		return err
	}
	restored := have.DeepCopy()
	metav1.SetMetaDataLabel(&restored.ObjectMeta, v1alpha1.ManagedByLabel, v1alpha1.ManagedBy)
	return r.Client.Patch(ctx, restored, patch.Locked(have))
}

// getOrCreate reads the object that want describes into have, or creates it. The cache holds only objects with our
// label, so an object without it is noticed when the create fails.
func (r *Reconciler) getOrCreate(ctx context.Context, want, have client.Object) (created bool, err error) {
	err = r.Client.Get(ctx, client.ObjectKeyFromObject(want), have)
	if !kube.IsNotFound(err) {
		return false, err
	}
	err = r.Client.Create(ctx, want)
	if !kube.IsAlreadyExists(err) {
		return err == nil, err
	}
	return false, r.Live.Get(ctx, client.ObjectKeyFromObject(want), have)
}
