package triageoperation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/internal/kube"
	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
)

// maxParts bounds the parts of all operations of an organization: each may hold hundreds of decisions to restore. Undos
// may exceed it: see rules.Limit.
const maxParts = 1000

func partsOf(all []v1alpha1.TriageOperation) (parts int) {
	for i := range all {
		parts += int(all[i].Status.Parts)
	}
	return parts
}

// savePart stores a part. If one with its name exists, an interrupted run stored it, or it remains from a deleted
// operation: it is updated if it differs. If the operation has its set already, another leader made it.
func (r *Reconciler) savePart(ctx context.Context, operation *v1alpha1.TriageOperation,
	part *v1alpha1.TriageOperationPart) error {
	err := r.Client.Create(ctx, part.DeepCopy())
	if !kube.IsAlreadyExists(err) {
		return err
	}
	stored := &v1alpha1.TriageOperationPart{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(part), stored); err != nil {
		return err // if the part has just been removed, the next reconcile creates it
	}
	owners := stored.OwnerReferences
	if len(owners) > 0 && owners[0].UID != operation.UID {
		return fmt.Errorf("the part %s of an earlier operation of that name has not been removed yet", part.Name)
	}
	if len(owners) > 0 && stored.Spec == part.Spec {
		return nil
	}
	// Read the operation after the part, because whoever makes the set stores the parts first.
	if made, err := r.setMade(ctx, operation); err != nil {
		return err
	} else if made {
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("triageoperationparts").GroupResource(), part.Name,
			errors.New("the operation has its set already"))
	}
	changed := stored.DeepCopy()
	changed.Spec, changed.OwnerReferences = part.Spec, part.OwnerReferences
	return r.Client.Patch(ctx, changed, patch.Locked(stored))
}

// part reads one of an operation's parts. The operation of the scope fails if the part is missing or unreadable.
func (r *Reconciler) part(ctx context.Context, s *scope, of *v1alpha1.TriageOperation,
	index int) ([]rules.Entry, *v1alpha1.TriageOperationPartSpec, error) {
	part := &v1alpha1.TriageOperationPart{}
	key := client.ObjectKey{Namespace: of.Namespace, Name: rules.PartName(of.Name, index)}
	err := r.Live.Get(ctx, key, part)
	if kube.IsNotFound(err) {
		fail(s, v1alpha1.ReasonPartsLost, fmt.Sprintf("The part %q has been removed: create another operation.", key.Name))
		return nil, &part.Spec, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read part %q: %w", key.Name, err)
	}
	entries, err := rules.Decode(part)
	if err != nil {
		fail(s, v1alpha1.ReasonPartsLost, fmt.Sprintf("The part %q cannot be read: create another operation.", key.Name))
		return nil, &part.Spec, nil //nolint:nilerr // the status has the error
	}
	return entries, &part.Spec, nil
}

// patchPart writes members of the current part.
func (r *Reconciler) patchPart(ctx context.Context, s *scope, members map[string]any) error {
	data, err := json.Marshal(map[string]any{"spec": members})
	if err != nil {
		return err
	}
	part := &v1alpha1.TriageOperationPart{}
	part.Namespace, part.Name = s.Object.Namespace, rules.PartName(s.Object.Name, int(s.Status.DoneParts))
	if err := r.Client.Patch(ctx, part, client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("record the progress of part %s: %w", part.Name, err)
	}
	return nil
}

// recordOutcomes stores the outcomes in the part, which completes it. If there is room, it also stores the later
// generations that decisions were based on, for an undo.
func (r *Reconciler) recordOutcomes(ctx context.Context, s *scope, entries []rules.Entry, mem *memory) error {
	outcomes, later := make([]byte, len(entries)), false
	for i := range entries {
		outcomes[i] = byte(mem.results[i].outcome)
		if mem.results[i].outcome == rules.Changed && mem.sent[i] > entries[i].Generation {
			entries[i].Generation, later = mem.sent[i], true
		}
	}
	members := map[string]any{"outcomes": string(outcomes)}
	if later {
		text, fits, err := rules.Encode(entries)
		if err != nil {
			return err
		}
		if fits {
			members["entries"] = text
		}
	}
	return r.patchPart(ctx, s, members)
}

// partWriteError returns the error of writing a part. If the error is permanent, the operation fails instead.
func (r *Reconciler) partWriteError(s *scope, err error) error {
	if !r.permanent(s.Object, err) {
		return err
	}
	why := conditions.Shortened(err.Error())
	if s.Status.Changed > 0 {
		fail(s, v1alpha1.ReasonPartsRefused, fmt.Sprintf("The API server refuses to store a part of the set: %q. "+
			"Fix the cause, then create another operation. What this one has changed stays; an undo restores it.", why))
		return nil
	}
	fail(s, v1alpha1.ReasonPartsRefused, fmt.Sprintf("The API server refuses to store a part of the set: %q. "+
		"Fix the cause, then create another operation.", why))
	return nil
}
