package organization

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// adoptNamespace ensures that the organization's namespace exists and was created by this operator for this very
// Organization; the name alone proves nothing. If it refuses the namespace, a watch reports when the obstacle is gone.
func (r *Reconciler) adoptNamespace(ctx context.Context, s *scope) error {
	namespace := &corev1.Namespace{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: s.namespace()}, namespace)
	if kube.IsNotFound(err) {
		namespace, err = r.createNamespace(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("namespace %s: %w", s.namespace(), err)
	}
	if verdict, refused := refuse(namespace, s.Object); refused {
		s.Status.Namespace, s.Status.Counts = "", v1alpha1.OrganizationCounts{}
		s.conclude(verdict)
		s.Stop()
	}
	s.home = namespace
	return nil
}

// labelNamespace sets the labels that follow from the spec and that the admission policies read.
func (r *Reconciler) labelNamespace(ctx context.Context, s *scope) error {
	changed := s.home.DeepCopy()
	setPolicyLabels(changed, &s.Object.Spec)
	if maps.Equal(changed.Labels, s.home.Labels) {
		return nil
	}
	if err := r.Client.Patch(ctx, changed, client.MergeFrom(s.home)); err != nil {
		return fmt.Errorf("label namespace %s: %w", s.namespace(), err)
	}
	return nil
}

// setPolicyLabels sets the labels that the admission policies read. Each of them stands for a restriction.
func setPolicyLabels(namespace *corev1.Namespace, spec *v1alpha1.OrganizationSpec) {
	set := func(wanted bool, name, value string) {
		delete(namespace.Labels, name)
		if wanted {
			metav1.SetMetaDataLabel(&namespace.ObjectMeta, name, value)
		}
	}
	set(spec.Triage != nil && spec.Triage.RequireReason, v1alpha1.RequireReasonLabel, "true")
	set(spec.Imports == nil || !spec.Imports.Create, v1alpha1.ImportsCreateLabel, "false")
}

// createNamespace creates the namespace, or returns the existing one, which may not be ours.
func (r *Reconciler) createNamespace(ctx context.Context, s *scope) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name:        s.namespace(),
		Labels:      map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy},
		Annotations: map[string]string{v1alpha1.OrganizationUIDAnnotation: string(s.Object.UID)},
	}}
	setPolicyLabels(namespace, &s.Object.Spec)
	err := r.Client.Create(ctx, namespace)
	if kube.IsAlreadyExists(err) {
		// Either we created it and the cache does not show it yet, or it is not ours.
		err = r.Live.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	} else if err == nil {
		r.Recorder.Eventf(s.Object, nil, corev1.EventTypeNormal, "NamespaceCreated", "CreateNamespace",
			"Created namespace %s", namespace.Name)
	}
	return namespace, err
}

// refuse reports whether the organization cannot use the namespace, and why.
func refuse(namespace *corev1.Namespace, organization *v1alpha1.Organization) (conditions.Verdict, bool) {
	switch {
	case !namespace.DeletionTimestamp.IsZero():
		// Once it is deleted, ours or not, we create a new one.
		return terminating(namespace, v1alpha1.ReasonNamespaceTerminating,
			fmt.Sprintf("Namespace %q is being deleted: it is created again once it is gone.", namespace.Name)), true
	case ours(namespace, organization):
		return conditions.Verdict{}, false
	default:
		// It may come from a backup, with the UID of an earlier Organization, or have lost its annotation.
		return conditions.Stalled(v1alpha1.ReasonNamespaceConflict,
			fmt.Sprintf("Namespace %q exists without this Organization's UID. If it holds the organization's findings, for "+
				"example from a backup, check its RoleBindings and adopt it: kubectl annotate namespace %q %s=%q --overwrite. "+
				"Otherwise give the Organization another name, or delete the namespace with all that it holds.",
				namespace.Name, namespace.Name, v1alpha1.OrganizationUIDAnnotation, organization.UID)), true
	}
}

// terminating returns the verdict on an organization whose namespace is being deleted. If Kubernetes reports that it
// fails to empty the namespace, the message quotes the first cause; else it names the finalizers of others. Kubernetes
// keeps trying, and a watch reports when that changes.
func terminating(namespace *corev1.Namespace, reason, message string) conditions.Verdict {
	for _, condition := range namespace.Status.Conditions {
		switch condition.Type {
		case corev1.NamespaceDeletionDiscoveryFailure, corev1.NamespaceDeletionGVParsingFailure,
			corev1.NamespaceDeletionContentFailure:
			if condition.Status == corev1.ConditionTrue {
				return conditions.NotReady(reason, message+fmt.Sprintf(" Kubernetes fails to empty it: %q. Remove what blocks "+
					"the deletion, for example an admission policy or an APIService that is down.",
					conditions.Shortened(condition.Message)))
			}
		}
	}
	if held := foreignFinalizers(namespace); len(held) > 0 {
		message += fmt.Sprintf(" The namespace, or objects in it, still have finalizers of other programs: %q. "+
			"If that lasts, check that these programs run; the namespace's conditions name the kinds.",
			conditions.Shortened(strings.Join(held, ", ")))
	}
	return conditions.NotReady(reason, message)
}

// foreignFinalizers returns the finalizers of others that hold the namespace or objects in it, each once. Kubernetes
// lists the latter in the message of a condition, with the number of objects, which changes all the time and is left
// out.
func foreignFinalizers(namespace *corev1.Namespace) []string {
	held := slices.Clone(namespace.Finalizers)
	for _, condition := range namespace.Status.Conditions {
		if condition.Type != corev1.NamespaceFinalizersRemaining || condition.Status != corev1.ConditionTrue {
			continue
		}
		_, list, _ := strings.Cut(condition.Message, ": ")
		for entry := range strings.SplitSeq(list, ", ") {
			finalizer, _, _ := strings.Cut(entry, " in ")
			held = append(held, finalizer)
		}
	}
	held = slices.DeleteFunc(held, func(f string) bool { return f == "" || f == v1alpha1.CleanupFinalizer })
	slices.Sort(held)
	return slices.Compact(held)
}

// ours reports whether the namespace was created for this very Organization. An earlier Organization of the same name
// had another UID.
func ours(namespace *corev1.Namespace, organization *v1alpha1.Organization) bool {
	return namespace.Annotations[v1alpha1.OrganizationUIDAnnotation] == string(organization.UID)
}
