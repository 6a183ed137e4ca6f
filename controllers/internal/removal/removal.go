// Package removal removes the children of an object that is being deleted.
//
// Children carry no owner reference: the garbage collector removes about 20 objects per second, a
// deletecollection with a field selector about 600.
package removal

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

const (
	// batch is how many children one call removes at most: about one second of work for the API server,
	// after which the worker is free for other objects.
	batch = 500
	// timeout bounds one call, however slow the API server is.
	timeout = 30 * time.Second
)

// When to requeue while children are left.
const (
	// soon lets other requests have the worker between two batches.
	soon = 10 * time.Millisecond
	// later gives other controllers with a finalizer on a child time to do their work.
	later = time.Second
)

// Batch removes at most selected.Limit of the selected objects of a kind. It returns when to requeue; 0 means that none
// exists. It reads from the API server, because a cache may not show a new child yet, which nothing would remove once
// its parent's finalizer is removed. It returns a refusal if only objects are left that the API server refuses to
// remove, or if refusals take all the time of the call.
func Batch(ctx context.Context, base reconcile.Base, kind client.Object, selected client.ListOptions) (time.Duration,
	error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	gvk, err := base.Client.GroupVersionKindFor(kind)
	if err != nil {
		return 0, err
	}
	found, first := &metav1.PartialObjectMetadataList{}, selected
	found.SetGroupVersionKind(gvk)
	first.Limit = 1
	if err := base.Live.List(ctx, found, &first); err != nil {
		return 0, fmt.Errorf("look for a %s with %s: %w", gvk.Kind, selected.FieldSelector, err)
	}
	if len(found.Items) == 0 {
		return 0, nil
	}
	err = base.Client.DeleteAllOf(ctx, kind, &client.DeleteAllOfOptions{ListOptions: selected})
	switch {
	case kube.IsRefusal(err):
		return oneByOne(ctx, base, kind, found, selected)
	case err != nil:
		return 0, fmt.Errorf("remove a %s with %s: %w", gvk.Kind, selected.FieldSelector, err)
	}
	if !found.Items[0].DeletionTimestamp.IsZero() {
		return later, nil
	}
	return soon, nil
}

// oneByOne removes the objects of the first page that contains any removable object, because a deletecollection ends at
// the first refusal. It lists into page. Each call repeats the requests that were refused before. If the time runs out
// meanwhile, it returns the refusal, and objects later in the list wait until fewer are refused.
func oneByOne(ctx context.Context, base reconcile.Base, kind client.Object, page *metav1.PartialObjectMetadataList,
	selected client.ListOptions) (again time.Duration, refusal error) {
	removed := false
	for more := true; more && !removed; more = page.Continue != "" {
		err := base.Live.List(ctx, page, &selected)
		switch {
		case err != nil && refusal != nil && ctx.Err() != nil:
			return 0, refusal
		case err != nil:
			return 0, fmt.Errorf("list what is to be removed: %w", err)
		}
		selected.Continue = page.Continue
		for _, child := range page.Items {
			if !child.DeletionTimestamp.IsZero() {
				again = later
				continue
			}
			err := one(ctx, base, kind, child.Name, selected)
			switch {
			case err == nil:
				removed = true
			case refusal != nil && ctx.Err() != nil:
				return 0, refusal
			case !kube.IsRefusal(err):
				return 0, err
			case refusal == nil:
				refusal = err
			}
		}
	}
	switch {
	case removed:
		return soon, nil
	case refusal != nil:
		return 0, refusal
	}
	return again, nil
}

// one removes an object. It needs the same right as a batch.
func one(ctx context.Context, base reconcile.Base, kind client.Object, name string, selected client.ListOptions) error {
	selected.Continue, selected.Limit = "", 0
	selected.FieldSelector = fields.AndSelectors(selected.FieldSelector,
		fields.OneTermEqualSelector(metav1.ObjectNameField, name))
	if err := base.Client.DeleteAllOf(ctx, kind, &client.DeleteAllOfOptions{ListOptions: selected}); err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}
