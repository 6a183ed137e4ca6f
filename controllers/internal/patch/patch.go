// Package patch writes the result of a reconcile, and writes nothing if nothing differs.
//
// Every patch carries the resourceVersion that the decision was based on, so that it fails with a
// conflict if the object has changed since.
package patch

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/appsec-dev/findings-operator/internal/kube"
)

// conflictDelay is how long to wait for the cache to show the current object.
const conflictDelay = 50 * time.Millisecond

// goneDelay is how long to wait before the next reconcile if an object that was read or written no
// longer exists.
const goneDelay = time.Second

// Status writes after over before as object's status, by JSON merge patch. It reports whether a write was needed;
// object then has the new resource version. The response is limited to metadata: the status is what was written, and
// encoding it is expensive for the API server.
func Status(ctx context.Context, c client.Client, object client.Object, before, after any) (bool, error) {
	data, err := statusPatch(object.GetResourceVersion(), before, after)
	if err != nil || data == nil {
		return false, err
	}
	kind, err := c.GroupVersionKindFor(object)
	if err != nil {
		return false, err
	}
	written := kube.MetadataOf(kind)
	written.Namespace, written.Name = object.GetNamespace(), object.GetName()
	if err := c.Status().Patch(ctx, written, client.RawPatch(types.MergePatchType, data)); err != nil {
		return false, fmt.Errorf("write the status: %w", err)
	}
	object.SetResourceVersion(written.ResourceVersion)
	return true, nil
}

// statusPatch returns nil if before and after are the same in JSON.
func statusPatch(resourceVersion string, before, after any) ([]byte, error) {
	from, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	var observed struct{ ObservedGeneration int64 }
	if err := json.Unmarshal(from, &observed); err != nil {
		return nil, err
	}
	if observed.ObservedGeneration == 0 {
		// Nothing is stored yet, not even counters of 0. Compared with the zero status they would never be written, and
		// columns would be blank.
		from = []byte("{}")
	}
	status, err := kube.Difference(json.RawMessage(from), after)
	if err != nil || status == nil {
		return nil, err
	}
	return kube.MergePatch(resourceVersion, "status", status)
}

// Locked returns the merge patch from an object as it was read; it fails if the object has changed since.
func Locked(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// AsSeen makes a deletion fail if the object has changed since it was read, or has been replaced.
func AsSeen(object client.Object) client.Preconditions {
	return client.Preconditions{UID: new(object.GetUID()), ResourceVersion: new(object.GetResourceVersion())}
}

// AddFinalizer adds the finalizer to the object if it is missing.
func AddFinalizer(ctx context.Context, c client.Client, object client.Object, finalizer string) error {
	if controllerutil.ContainsFinalizer(object, finalizer) {
		return nil
	}
	return changeFinalizers(ctx, c, object, finalizer, controllerutil.AddFinalizer)
}

// RemoveFinalizer removes the finalizer from the object if present.
func RemoveFinalizer(ctx context.Context, c client.Client, object client.Object, finalizer string) error {
	if !controllerutil.ContainsFinalizer(object, finalizer) {
		return nil
	}
	return changeFinalizers(ctx, c, object, finalizer, controllerutil.RemoveFinalizer)
}

func changeFinalizers(ctx context.Context, c client.Client, object client.Object, finalizer string,
	change func(client.Object, string) bool) error {
	before := object.DeepCopyObject().(client.Object)
	change(object, finalizer)
	err := c.Patch(ctx, object, Locked(before))
	if err != nil {
		return fmt.Errorf("write the finalizers: %w", err)
	}
	return nil
}

// Outcome turns the error of a write into the result of a reconcile. Conflicts and deleted objects are normal with
// several writers, and not reported as errors: the request is requeued to see the current state. A NotFound is
// requeued, too, because it may be about another object than the reconciled one.
func Outcome(result ctrl.Result, err error) (ctrl.Result, error) {
	switch {
	case err == nil:
		return result, nil
	case kube.IsConflict(err):
		return ctrl.Result{RequeueAfter: wait.Jitter(conflictDelay, 1)}, nil
	case kube.IsNotFound(err):
		return ctrl.Result{RequeueAfter: wait.Jitter(goneDelay, 1)}, nil
	default:
		return ctrl.Result{}, err
	}
}
