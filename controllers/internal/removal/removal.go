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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// batch is how many children one call removes: about one second of work for the API server,
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

// Remover removes children in batches.
type Remover struct {
	// Client removes them.
	Client client.Client
	// Reader reads from the API server: a cache may not show a newly created child yet, and once
	// the parent's finalizer is removed nothing would remove that child.
	Reader client.Reader
}

// Batch removes at most one batch of the kind's objects that the field selector matches. It returns
// when to requeue; 0 means that the API server had no such object.
func (r Remover) Batch(ctx context.Context, kind client.Object, namespace, field, value string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	gvk, err := apiutil.GVKForObject(kind, r.Client.Scheme())
	if err != nil {
		return 0, err
	}
	selected := &client.ListOptions{Limit: 1, Namespace: namespace}
	client.MatchingFields{field: value}.ApplyToList(selected)

	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(gvk)
	if err := r.Reader.List(ctx, found, selected); err != nil {
		return 0, fmt.Errorf("look for a %s with %s=%s: %w", gvk.Kind, field, value, err)
	}
	if len(found.Items) == 0 {
		return 0, nil
	}
	selected.Limit = batch
	if err := r.Client.DeleteAllOf(ctx, kind, &client.DeleteAllOfOptions{ListOptions: *selected}); err != nil {
		return 0, fmt.Errorf("remove a %s with %s=%s: %w", gvk.Kind, field, value, err)
	}
	if !found.Items[0].DeletionTimestamp.IsZero() {
		return later, nil
	}
	return soon, nil
}
