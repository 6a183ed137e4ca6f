package removal

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// Plan describes what is removed together with an object of a kind.
type Plan struct {
	// Parent is the object's name in messages, such as "project".
	Parent string
	// Field is the selectable field by which children name the object.
	Field string
	// Children are removed in this order, one kind after the other.
	Children []Child
}

// Child is a kind of children.
type Child struct {
	Kind client.Object
	// Name is the children's name in messages, such as "findings".
	Name string
}

// Children removes one batch of the object's children and requeues, until the API server has none left; then it
// releases the object. The next reconcile finds children created meanwhile. announce returns the text of the Event sent
// when the removal begins. Children waits while the cache is behind, because children are selected by the object's name
// and may belong to a new object of that name, or while the API server refuses to return the object.
func Children[O reconcile.Object[S], S reconcile.Status[S]](
	ctx context.Context, base reconcile.Base, s *reconcile.Scope[O, S], plan Plan, announce func() string,
) error {
	if is, err := isBeingDeleted(ctx, base, s.Object); err != nil || !is {
		s.LeaveStatus()
		s.Stop()
		if kube.IsRefusal(err) {
			s.RetryRefused(ctx, err, "the API server refuses to return the object: its removal is tried again later")
			return nil
		}
		s.RequeueAfter(later)
		return err
	}
	selected := client.ListOptions{
		Namespace: s.Object.GetNamespace(), FieldSelector: fields.OneTermEqualSelector(plan.Field, s.Object.GetName()),
		Limit: batch,
	}
	for _, child := range plan.Children {
		again, err := Batch(ctx, base, child.Kind, selected)
		if again == 0 && err == nil {
			continue
		}
		if s.ReadyReason() != v1alpha1.ReasonDeleting {
			base.Recorder.Eventf(s.Object, nil, corev1.EventTypeNormal, v1alpha1.ReasonDeleting, "Remove", "%s", announce())
		}
		s.Judge(deleting(plan.Parent, child.Name, err))
		s.RequeueAfter(again)
		if kube.IsRefusal(err) {
			s.RetryRefused(ctx, err, "removals were refused, and are tried again later")
			return nil // later kinds wait, because what is left may depend on them
		}
		return err
	}
	s.Release()
	return nil
}

// isBeingDeleted reports whether this very object exists in the API server and is being deleted.
func isBeingDeleted(ctx context.Context, base reconcile.Base, object client.Object) (bool, error) {
	gvk, err := base.Client.GroupVersionKindFor(object)
	if err != nil {
		return false, err
	}
	current := kube.MetadataOf(gvk)
	err = base.Live.Get(ctx, client.ObjectKeyFromObject(object), current)
	switch {
	case kube.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("check whether the %s is being deleted: %w", gvk.Kind, err)
	}
	return current.UID == object.GetUID() && !current.DeletionTimestamp.IsZero(), nil
}

func deleting(parent, children string, err error) conditions.Verdict {
	verdict := conditions.NotReady(v1alpha1.ReasonDeleting,
		fmt.Sprintf("The %s is being deleted; its %s are being removed.", parent, children))
	switch {
	case kube.IsRefusal(err):
		verdict.Message = fmt.Sprintf("The %s is being deleted, but the API server refuses to remove some of its %s, "+
			"which is tried again: %q. Remove what blocks the deletion, for example an admission policy.", parent, children,
			conditions.Shortened(err.Error()))
	case kube.StatusOf(err).Code != 0:
		verdict.Message = fmt.Sprintf("The %s is being deleted, but the API server fails to remove some of its %s, "+
			"which is tried again: %q. If that lasts, remove the cause, for example a webhook that is down.", parent, children,
			conditions.Shortened(err.Error()))
	}
	return verdict
}
