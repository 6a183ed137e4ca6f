package triageoperation

import (
	"cmp"
	"context"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
)

const (
	// queueRecheck is how often a queued operation checks whether it is its turn. Usually it is enqueued sooner.
	queueRecheck = 5 * time.Minute
	// gatherDelay is how long changes of operations are gathered before it is determined which come next.
	gatherDelay = 100 * time.Millisecond
)

// awaitTurn lets one operation per organization at a time select or decide, in order, so that an organization with many
// operations takes no more controller time than one with a single operation. An operation beyond what the organization
// may keep fails at once, which bounds the queue.
func (r *Reconciler) awaitTurn(ctx context.Context, s *scope) error {
	if s.Status.SelectedAt != nil && !s.Object.Spec.Commit {
		return nil // it is a preview
	}
	all, err := r.operations(ctx, s.Object.Namespace)
	if err != nil {
		return err
	}
	before := ahead(s.Object, all)
	if s.Status.SelectedAt == nil && keptAfter(s.Object, all) >= rules.Limit(s.Object, rules.MaxOperations) {
		tooMany(s, "The organization has the maximum number of operations")
		return nil
	}
	if len(before) == 0 {
		return nil
	}
	if s.Status.Phase == "" {
		s.Status.Phase = v1alpha1.OperationSelecting
	}
	// The message does not name the other operation: otherwise each end of an operation would rewrite all that wait.
	inProgress(s, "Another operation of the organization comes first: this one goes on after it.")
	s.RequeueAfter(queueRecheck)
	s.Stop()
	return nil
}

// keptAfter returns how many operations the organization will keep once all operations older than this one have their
// sets.
func keptAfter(operation *v1alpha1.TriageOperation, all []v1alpha1.TriageOperation) int {
	kept := 0
	for i := range all {
		if o := &all[i]; o.Status.SelectedAt != nil || busy(o) && byAge(o, operation) < 0 {
			kept++
		}
	}
	return kept
}

// enqueueNext enqueues the operations that no other operation precedes, whenever one may have left the queue.
func (r *Reconciler) enqueueNext() handler.EventHandler {
	enqueue := watch.Gathered(gatherDelay, func(ctx context.Context, change watch.Change, q watch.Queue) {
		watch.AddAfter(q, 0, r.next(ctx, change.Object().GetNamespace()))
	})
	return watch.Changes(func(ctx context.Context, change watch.Change, q watch.Queue) {
		if mayAdvanceQueue(change) {
			enqueue(ctx, change, q)
		}
	})
}

// next returns requests for the operations of the namespace that no other operation precedes.
func (r *Reconciler) next(ctx context.Context, namespace string) (requests []ctrl.Request) {
	all, err := r.operations(ctx, namespace)
	watch.LogError(ctx, err, "find the next operation") // only while the manager stops
	var first *v1alpha1.TriageOperation
	if queue := queued(all); len(queue) > 0 {
		first = slices.MinFunc(queue, byTurn)
	}
	for i := range all {
		// An undo that waits for the operation that it undoes is not queued, but its turn may come before that of the first.
		if o := &all[i]; busy(o) && (first == nil || byTurn(o, first) <= 0) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		}
	}
	return requests
}

// mayAdvanceQueue reports whether the change may take an operation out of the queue, or put one ahead of others. A new
// operation may do so, too: an existing undo that names it, and has no set yet, leaves the queue to wait for it.
func mayAdvanceQueue(change watch.Change) bool {
	before, existed := change.Before.(*v1alpha1.TriageOperation)
	after, exists := change.After.(*v1alpha1.TriageOperation)
	switch {
	case existed && exists:
		// The operation may have been deleted and created again between two events.
		return before.UID != after.UID || busy(before) != busy(after) || hasBegun(before) != hasBegun(after)
	case existed:
		return busy(before)
	}
	return !change.Initial
}

// ahead returns the operations whose turn comes before the given one.
func ahead(operation *v1alpha1.TriageOperation, all []v1alpha1.TriageOperation) []*v1alpha1.TriageOperation {
	return slices.DeleteFunc(queued(all), func(o *v1alpha1.TriageOperation) bool { return byTurn(o, operation) >= 0 })
}

// queued returns the operations that have or await their turn, in no particular order.
func queued(all []v1alpha1.TriageOperation) []*v1alpha1.TriageOperation {
	ended := map[string]bool{}
	for i := range all {
		ended[all[i].Name] = all[i].Status.CompletedAt != nil
	}
	var queue []*v1alpha1.TriageOperation
	for i := range all {
		// An undo waits for the operation that it undoes, so that operation must not wait for the undo: neither would end. An
		// undo that has its set waits no longer, even if an operation with that name was created again.
		undone, exists := ended[string(all[i].Spec.Undo)]
		if waits := exists && !undone && all[i].Status.SelectedAt == nil; busy(&all[i]) && !waits {
			queue = append(queue, &all[i])
		}
	}
	return queue
}

// busy reports whether the operation selects or decides, or waits to. A preview does neither until it is committed.
func busy(o *v1alpha1.TriageOperation) bool {
	switch o.Status.Phase {
	case "", v1alpha1.OperationSelecting, v1alpha1.OperationRunning:
		return o.DeletionTimestamp.IsZero()
	case v1alpha1.OperationPreview:
		return o.Spec.Commit && o.DeletionTimestamp.IsZero()
	case v1alpha1.OperationCompleted, v1alpha1.OperationFailed:
	}
	return false
}

// hasBegun reports whether the operation has begun to decide, and has not ended.
func hasBegun(o *v1alpha1.TriageOperation) bool { return o.Status.Phase == v1alpha1.OperationRunning }

// byTurn orders operations: those that have begun to decide first, then by age. Otherwise, an older preview that is
// committed later would interrupt a running operation halfway.
func byTurn(a, b *v1alpha1.TriageOperation) int {
	switch {
	case hasBegun(a) == hasBegun(b):
		return byAge(a, b)
	case hasBegun(a):
		return -1
	}
	return 1
}

// byAge orders operations from the oldest.
func byAge(a, b *v1alpha1.TriageOperation) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
