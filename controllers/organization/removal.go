package organization

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// recheckInterval is how often a removal checks whether the organization is empty, since this controller does not watch
// findings.
const recheckInterval = 15 * time.Second

// remove deletes the organization's namespace, if it is ours, and then releases the Organization. If the removal waits,
// the other phases follow.
func (r *Reconciler) remove(ctx context.Context, s *scope) error {
	namespace := &corev1.Namespace{}
	// Read past the cache: a namespace that it does not show yet would be left behind.
	err := r.Live.Get(ctx, client.ObjectKey{Name: s.namespace()}, namespace)
	if kube.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get namespace %s: %w", s.namespace(), err)
	}
	if kube.IsNotFound(err) || !ours(namespace, s.Object) {
		s.Release()
		return nil
	}
	if namespace.DeletionTimestamp.IsZero() {
		held, err := r.holds(ctx, s)
		if err != nil {
			return err
		}
		if held != "" {
			s.RequeueAfter(recheckInterval)
			s.home, s.held = namespace, held
			s.Judge(s.waiting(""))
			return nil
		}
		if err := r.Client.Delete(ctx, namespace, patch.AsSeen(namespace)); err != nil {
			s.home = namespace
			return s.judgeUndeleted(ctx, fmt.Errorf("delete namespace %s: %w", namespace.Name, err))
		}
	}
	// The watch on namespaces reports when it is deleted.
	s.Status.Namespace = ""
	s.conclude(terminating(namespace, v1alpha1.ReasonDeleting,
		fmt.Sprintf("Namespace %q is being removed.", namespace.Name)))
	s.Stop()
	return nil
}

// wait ends a reconcile in which the removal waits and the organization was updated. If the API server failed to delete
// the namespace, it returns that error.
func (r *Reconciler) wait(_ context.Context, s *scope) error {
	s.conclude(s.waiting(""))
	if kube.IsRefusal(s.undeleted) {
		return nil
	}
	return s.undeleted
}

// judgeUndeleted records that the API server refused or failed to delete the namespace. It returns the error if that is
// unknown, which ends the reconcile.
func (s *scope) judgeUndeleted(ctx context.Context, err error) error {
	switch {
	case kube.IsConflict(err), kube.IsNotFound(err):
		return err // the namespace has changed since it was read, which the next reconcile sees
	case kube.StatusOf(err).Code == 0:
		return err
	case kube.IsRefusal(err):
		s.RetryRefused(ctx, err, "the deletion of the namespace was refused, and is tried again later")
	}
	// A webhook that is down may block the deletion for days, and the namespace is in use until then.
	s.undeleted = err
	s.Judge(s.waiting(""))
	return nil
}

// blockingKinds lists the kinds that block the removal of an organization. Others, such as API keys and webhook
// deliveries, are worthless without these, and are removed.
var blockingKinds = []string{"Repository", "Project", "Finding", "Scan", "Review", "ReviewIssue", "TriagePolicy", "WebhookEndpoint"}

// holds describes the objects that block the removal; "" if there are none, or if the annotation allows removing them.
// A list with limit 1 returns how many more objects there are.
func (r *Reconciler) holds(ctx context.Context, s *scope) (string, error) {
	if s.Object.Annotations[v1alpha1.RemoveContentsAnnotation] == "true" {
		return "", nil
	}
	var held []string
	for _, kind := range blockingKinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
		if err := r.Live.List(ctx, list, client.InNamespace(s.namespace()), client.Limit(1)); err != nil {
			return "", fmt.Errorf("look for a %s in %s: %w", kind, s.namespace(), err)
		}
		if n := int64(len(list.Items)) + ptr.Deref(list.RemainingItemCount, 0); n > 0 {
			held = append(held, kind+" ("+roughly(n)+")")
		}
	}
	return strings.Join(held, ", "), nil
}

// roughly returns an order of magnitude, so that the message does not change with every removed object.
func roughly(n int64) string {
	switch {
	case n < 10:
		return "a few"
	case n < 100:
		return "tens"
	case n < 1000:
		return "hundreds"
	case n < 10_000:
		return "thousands"
	}
	return "tens of thousands or more"
}

// waiting returns the verdict on an organization whose removal waits, with a sentence on what happens meanwhile.
func (s *scope) waiting(meanwhile string) conditions.Verdict {
	switch {
	case kube.IsRefusal(s.undeleted):
		return conditions.NotReady(v1alpha1.ReasonDeleting,
			fmt.Sprintf("The API server refuses to delete namespace %q, which is tried again: %q. Remove what blocks the "+
				"deletion, for example an admission policy.", s.namespace(), conditions.Shortened(s.undeleted.Error()))+meanwhile)
	case s.undeleted != nil:
		return conditions.NotReady(v1alpha1.ReasonDeleting,
			fmt.Sprintf("The API server fails to delete namespace %q, which is tried again: %q. If that lasts, remove the "+
				"cause, for example a webhook that is down.", s.namespace(), conditions.Shortened(s.undeleted.Error()))+meanwhile)
	}
	return conditions.Stalled(v1alpha1.ReasonNotEmpty,
		fmt.Sprintf("Namespace %q still holds objects of these kinds: %s. Delete them, or annotate the Organization with "+
			"%s=true to remove everything. If it was deleted by mistake, take the deletion back as in "+
			"docs/kinds/organization.md.", s.namespace(), s.held, v1alpha1.RemoveContentsAnnotation)+meanwhile)
}
