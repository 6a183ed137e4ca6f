// Package patch writes what a reconcile has decided, and nothing where nothing differs.
//
// Every patch carries the resourceVersion that the decision was made upon, so that a decision
// upon an object that has moved on since is refused rather than written over it.
package patch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conflictDelay is how long to wait for the cache to show the object as it is now.
const conflictDelay = 50 * time.Millisecond

// goneDelay is how long to wait before looking again where something that was written or read has gone.
const goneDelay = time.Second

// Status writes after over before as object's status, by JSON merge patch. It reports whether
// a write was needed; object then has the resource version that it made. No more of the answer is
// asked for: object's status is what was written, and encoding it costs the API server much.
func Status(ctx context.Context, c client.Client, object client.Object, before, after any) (bool, error) {
	data, err := statusPatch(object.GetResourceVersion(), before, after)
	if err != nil || data == nil {
		return false, err
	}
	kind, err := c.GroupVersionKindFor(object)
	if err != nil {
		return false, err
	}
	written := &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()},
	}
	written.SetGroupVersionKind(kind)
	if err := c.Status().Patch(ctx, written, client.RawPatch(types.MergePatchType, data)); err != nil {
		return false, fmt.Errorf("write the status: %w", err)
	}
	object.SetResourceVersion(written.ResourceVersion)
	return true, nil
}

// statusPatch is nil where before and after are the same in JSON, which is what is stored:
// a nil list and an empty one, or one time in two zones, are no difference.
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
		// Nothing is stored yet, and not counters of 0, which would then never be written and show as blanks.
		from = []byte("{}")
	}
	to, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	status, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil || bytes.Equal(status, []byte("{}")) {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion},
		"status":   json.RawMessage(status),
	})
}

// AddFinalizer puts the finalizer on the object where it is missing.
func AddFinalizer(ctx context.Context, c client.Client, object client.Object, finalizer string) error {
	if slices.Contains(object.GetFinalizers(), finalizer) {
		return nil
	}
	return setFinalizers(ctx, c, object, append(slices.Clone(object.GetFinalizers()), finalizer))
}

// RemoveFinalizer takes the finalizer off the object where it is there.
func RemoveFinalizer(ctx context.Context, c client.Client, object client.Object, finalizer string) error {
	if !slices.Contains(object.GetFinalizers(), finalizer) {
		return nil
	}
	return setFinalizers(ctx, c, object, slices.DeleteFunc(slices.Clone(object.GetFinalizers()),
		func(name string) bool { return name == finalizer }))
}

// setFinalizers touches nothing but metadata: the spec is other writers'.
func setFinalizers(ctx context.Context, c client.Client, object client.Object, finalizers []string) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": object.GetResourceVersion(),
		"finalizers":      finalizers,
	}})
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("write the finalizers: %w", err)
	}
	return nil
}

// Outcome turns the error of a write into that of a reconcile. A conflict is everyday life beside other writers, and so
// is an object that has gone meanwhile: the reconcile comes again, sees what is there now, and neither is an error. It
// comes again for what has gone too: that may be another object than the reconciled one, which still needs its work.
func Outcome(result ctrl.Result, err error) (ctrl.Result, error) {
	switch {
	case err == nil:
		return result, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: wait.Jitter(conflictDelay, 1)}, nil
	case apierrors.IsNotFound(err):
		return ctrl.Result{RequeueAfter: wait.Jitter(goneDelay, 1)}, nil
	default:
		return ctrl.Result{}, err
	}
}
