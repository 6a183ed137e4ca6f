package triageoperation

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/kube"
	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
)

// cacheLag is how long after an operation's end the cache may still miss some of its decisions. The recorded end is the
// time when the last reconcile began, which may take two minutes.
const cacheLag = 3 * time.Minute

// selectUndone returns the findings that the undone operation decided about. It stops the reconcile if that operation
// is still running or cannot be undone.
func (r *Reconciler) selectUndone(ctx context.Context, s *scope) ([]selected, error) {
	undone := &v1alpha1.TriageOperation{}
	key := client.ObjectKey{Namespace: s.Object.Namespace, Name: string(s.Object.Spec.Undo)}
	err := r.Live.Get(ctx, key, undone)
	switch {
	case kube.IsNotFound(err):
		fail(s, v1alpha1.ReasonNotUndoable, fmt.Sprintf("The operation %q does not exist in this namespace, or has been deleted.", key.Name))
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look up operation %q: %w", key.Name, err)
	case undone.Status.Phase == v1alpha1.OperationFailed && undone.Status.Changed == 0, !undone.Spec.Commit:
		fail(s, v1alpha1.ReasonNotUndoable, fmt.Sprintf("The operation %q has not decided about anything.", key.Name))
		return nil, nil
	case undone.Status.CompletedAt == nil:
		return nil, r.awaitUndone(ctx, s, undone)
	}
	compared, err := r.newComparison(ctx, s, undone)
	if err != nil {
		return nil, err
	}
	var set []selected
	for i := range int(undone.Status.DoneParts) {
		entries, part, err := r.part(ctx, s, undone, i)
		if err != nil || s.Stopped() {
			return nil, err
		}
		if len(part.Outcomes) != len(entries) {
			fail(s, v1alpha1.ReasonPartsLost, fmt.Sprintf("The part %q does not record which of its findings were "+
				"changed, so no undo is possible: decide about them by another selection.", rules.PartName(undone.Name, i)))
			return nil, nil
		}
		for j := range entries {
			if rules.Outcome(part.Outcomes[j]) != rules.Changed {
				continue
			}
			c, err := compared.choose(ctx, &entries[j])
			if err != nil {
				return nil, err
			}
			set = append(set, c)
		}
	}
	s.Status.Matched = int32(len(set)) //nolint:gosec // no more than the operation had
	return set, nil
}

// awaitUndone requeues the operation until the one that it undoes has ended, unless that one waits for this one.
func (r *Reconciler) awaitUndone(ctx context.Context, s *scope, undone *v1alpha1.TriageOperation) error {
	all, err := r.operations(ctx, s.Object.Namespace)
	if err != nil {
		return err
	}
	if waitsFor(undone, s.Object.Name, all) {
		fail(s, v1alpha1.ReasonNotUndoable, fmt.Sprintf(
			"The operation %q undoes %q, and so waits for this one, itself or through other undos: create another operation.",
			undone.Name, undone.Spec.Undo))
		return nil
	}
	inProgress(s, fmt.Sprintf("The operation %q is still running: it will be undone once it has ended.", undone.Name))
	s.RequeueAfter(undoRecheck)
	s.Stop()
	return nil
}

// waitsFor reports whether the operation waits for the named one, directly or through other undos.
func waitsFor(operation *v1alpha1.TriageOperation, name string, all []v1alpha1.TriageOperation) bool {
	waits := map[string]string{}
	for i := range all {
		if all[i].Status.CompletedAt == nil {
			waits[all[i].Name] = string(all[i].Spec.Undo)
		}
	}
	next := string(operation.Spec.Undo)
	// Undos may wait in a circle, so stop after as many steps as there are operations.
	for range all {
		if next == name {
			return true
		}
		next = waits[next]
	}
	return next == name
}

// comparison compares the findings of the undone operation with its decisions.
type comparison struct {
	reconcile.Base
	namespace, author string
	// live means that the cache may still miss some of what the operation decided or a later undo restored.
	live bool
	// restored holds, by author of an undo and by finding, the author whose decision the undo restored.
	restored map[string]map[v1alpha1.ResourceName]string
}

func (r *Reconciler) newComparison(ctx context.Context, s *scope,
	undone *v1alpha1.TriageOperation) (*comparison, error) {
	all, err := r.operations(ctx, undone.Namespace)
	if err != nil {
		return nil, err
	}
	ended := *undone.Status.CompletedAt
	for i := range all {
		// Only an undo can restore an earlier decision.
		if end := all[i].Status.CompletedAt; all[i].Spec.Undo != "" && end != nil && end.After(ended.Time) {
			ended = *end
		}
	}
	return &comparison{
		Base: r.Base, namespace: undone.Namespace, author: rules.Author(undone.Name),
		live:     s.Now.Before(ended.Add(cacheLag)),
		restored: map[string]map[v1alpha1.ResourceName]string{},
	}, nil
}

func (c *comparison) choose(ctx context.Context, entry *rules.Entry) (selected, error) {
	finding, stands, err := c.read(ctx, c.Client, entry, client.UnsafeDisableDeepCopy)
	// The cache is current otherwise, and reading thousands of findings one by one could exceed the reconcile timeout.
	if err == nil && !stands && c.live {
		finding, stands, err = c.read(ctx, c.Live, entry)
	}
	return selected{rules.Undo(entry, finding, c.author, stands), finding}, err
}

// read returns the finding (nil if it does not exist), and whether the operation's decision stands: the operation made
// it, or the undo of a later operation restored it.
func (c *comparison) read(ctx context.Context, from client.Reader, entry *rules.Entry,
	options ...client.GetOption) (finding *v1alpha1.Finding, stands bool, err error) {
	finding = &v1alpha1.Finding{}
	key := client.ObjectKey{Namespace: c.namespace, Name: string(entry.Finding)}
	if err := from.Get(ctx, key, finding, options...); err != nil {
		return nil, false, kube.IgnoreNotFound(err)
	}
	by := finding.Spec.Triage.By
	// Follow the undos back to the author of the decision. Names can be reused, so undos could form a circle: stop after
	// as many steps as there may be operations, undos included.
	for range 2 * rules.MaxOperations {
		if by == c.author || by == "" {
			break
		}
		if _, known := c.restored[by]; !known {
			if c.restored[by], err = c.authorsRestoredBy(ctx, by); err != nil {
				return nil, false, err
			}
		}
		by = c.restored[by][entry.Finding]
	}
	return finding, by == c.author, nil
}

// authorsRestoredBy returns, by finding, the authors of the decisions that an undo restored; none if the author is not
// an undo. A missing or unreadable part has restored nothing.
func (c *comparison) authorsRestoredBy(ctx context.Context, author string) (map[v1alpha1.ResourceName]string, error) {
	name, isOperation := strings.CutPrefix(author, v1alpha1.OperationAuthorPrefix)
	if !isOperation {
		return nil, nil
	}
	undo := &v1alpha1.TriageOperation{}
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, undo)
	if err != nil || undo.Spec.Undo == "" {
		return nil, kube.IgnoreNotFound(err)
	}
	authors := map[v1alpha1.ResourceName]string{}
	for i := range int(undo.Status.DoneParts) {
		part := &v1alpha1.TriageOperationPart{}
		err := c.Live.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: rules.PartName(name, i)}, part)
		if kube.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read part %q: %w", rules.PartName(name, i), err)
		}
		maps.Copy(authors, rules.Restored(part))
	}
	return authors, nil
}
