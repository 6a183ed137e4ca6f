// Package removal removes the children of an object that is going.
//
// Children carry no owner reference: the garbage collector removes some 20 objects a second,
// a deletecollection with a field selector some 600.
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
	// batch is how many children one call removes: about a second's work of the API server,
	// after which the worker is free for others.
	batch = 500
	// timeout bounds one call, however slow the API server is.
	timeout = 30 * time.Second
)

// How soon to come back while children are left.
const (
	// soon lets other requests have the worker between two batches.
	soon = 10 * time.Millisecond
	// later gives whoever else has a finalizer on a child time to do its work.
	later = time.Second
)

// Remover removes children in batches.
type Remover struct {
	// Client removes them.
	Client client.Client
	// Reader asks the API server itself: a cache may not yet show a child made a moment ago,
	// and once the parent's finalizer is off nobody would come back for it.
	Reader client.Reader
}

// Batch removes at most one batch of the kind's objects that the field selector matches. It
// returns how soon to come back; 0 says that none was there, as the API server knows it.
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
