package triageoperation

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
)

// cacheLag is how long after an operation's end the cache may not show all of its decisions yet. The end is recorded as
// the time when its last reconcile began, which may take two minutes.
const cacheLag = 3 * time.Minute

// chooseUndone returns the findings that the undone operation has decided about; nil if that operation is still
// running, or cannot be undone.
func (r *Reconciler) chooseUndone(ctx context.Context, s *scope) ([]chosen, error) {
	undone := &v1alpha1.TriageOperation{}
	key := client.ObjectKey{Namespace: s.Object.Namespace, Name: string(s.Object.Spec.Undo)}
	err := r.Live.Get(ctx, key, undone)
	switch {
	case apierrors.IsNotFound(err):
		fail(s, v1alpha1.ReasonNotUndoable, fmt.Sprintf("The operation %q does not exist in this namespace, or has been deleted.", key.Name))
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look up operation %q: %w", key.Name, err)
	case undone.Status.Phase == v1alpha1.OperationFailed && undone.Status.Changed == 0, !undone.Spec.Commit:
		fail(s, v1alpha1.ReasonNotUndoable, fmt.Sprintf("The operation %q has not decided about anything.", key.Name))
		return nil, nil
	case undone.Status.CompletedAt == nil:
		inProgress(s, fmt.Sprintf("The operation %q is still running: it will be undone once it has ended.", key.Name))
		s.RequeueAfter(lookAgain)
		s.Stop()
		return nil, nil
	}
	set := []chosen{}
	for i := range int(undone.Status.DoneParts) {
		entries, part, err := r.part(ctx, s, undone, i)
		if err != nil || s.Status.Phase == v1alpha1.OperationFailed {
			return nil, err
		}
		for j := range entries {
			if j >= len(part.Outcomes) || rules.Outcome(part.Outcomes[j]) != rules.Changed {
				continue
			}
			c, err := r.undone(ctx, s, undone, &entries[j])
			if err != nil {
				return nil, err
			}
			set = append(set, c)
		}
	}
	s.Status.Matched = int32(len(set)) //nolint:gosec // no more than the operation had
	return set, nil
}

func (r *Reconciler) undone(ctx context.Context, s *scope, operation *v1alpha1.TriageOperation,
	entry *rules.Entry) (chosen, error) {
	finding := &v1alpha1.Finding{}
	key := client.ObjectKey{Namespace: s.Object.Namespace, Name: string(entry.Finding)}
	err := r.Client.Get(ctx, key, finding, client.UnsafeDisableDeepCopy)
	differs := apierrors.IsNotFound(err) || err == nil && finding.Spec.Triage.By != rules.Author(operation.Name)
	// Later the cache is right: to read thousands of findings one by one may take longer than a reconcile may.
	if differs && s.Now.Before(operation.Status.CompletedAt.Add(cacheLag)) {
		finding = &v1alpha1.Finding{}
		err = r.Live.Get(ctx, key, finding)
	}
	switch {
	case apierrors.IsNotFound(err):
		return chosen{entry: rules.Undo(operation.Name, entry, nil)}, nil
	case err != nil:
		return chosen{}, err
	}
	return chosen{rules.Undo(operation.Name, entry, finding), finding}, nil
}

// part reads one of an operation's parts. If the part is missing or unreadable, the operation of
// the scope fails.
func (r *Reconciler) part(ctx context.Context, s *scope, of *v1alpha1.TriageOperation,
	index int) ([]rules.Entry, *v1alpha1.TriageOperationPartSpec, error) {
	part := &v1alpha1.TriageOperationPart{}
	key := client.ObjectKey{Namespace: of.Namespace, Name: rules.PartName(of.Name, index)}
	err := r.Live.Get(ctx, key, part)
	if apierrors.IsNotFound(err) {
		fail(s, v1alpha1.ReasonPartsLost, fmt.Sprintf("The part %q has been removed: make another operation.", key.Name))
		return nil, &part.Spec, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read part %q: %w", key.Name, err)
	}
	entries, err := rules.Decode(part)
	if err != nil {
		fail(s, v1alpha1.ReasonPartsLost, fmt.Sprintf("The part %q cannot be read: make another operation.", key.Name))
		return nil, &part.Spec, nil //nolint:nilerr // it is in the status
	}
	return entries, &part.Spec, nil
}
