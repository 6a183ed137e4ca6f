package triageoperation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/reconcile"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/safely"
	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
)

const (
	// maxAtOnce is how many findings an operation writes at a time, few enough to leave API server capacity to users.
	maxAtOnce = 4
	// partTimeout bounds one run through a part. It leaves the reconcile, which may take two minutes, time to store the
	// error, and frees the worker for others. The next run continues with the findings without an outcome.
	partTimeout = 100 * time.Second
	// maxTries bounds the retries for a finding that others write at the same time.
	maxTries = 10
)

// result is the outcome for a finding, and the reason if the finding was not changed. refused means that the API server
// refused the write for RefusalPatience.
type result struct {
	outcome rules.Outcome
	why     string
	refused bool
}

// workThroughPart decides about the findings of the next part. After an interruption it recognises decisions that were
// already written, and does not repeat them.
func (r *Reconciler) workThroughPart(ctx context.Context, s *scope) error {
	if s.Status.DoneParts >= s.Status.Parts {
		return nil
	}
	entries, part, err := r.part(ctx, s, s.Object, int(s.Status.DoneParts))
	if err != nil || s.Stopped() {
		return err
	}
	var results []result
	if part.Outcomes == "" {
		results, err = r.processPart(ctx, s, entries, part.Begun)
		// The error may be that of an earlier write, or of a part that was removed with the operation.
		if errors.Is(err, errDeleted) || err != nil && errors.Is(stillStored(ctx, r.Client, s.Object), errDeleted) {
			s.LeaveStatus()
			s.Stop()
			return nil // an event of the deletion follows
		}
		if err != nil {
			inProgress(s, fmt.Sprintf("A request failed and is being retried: %q.", conditions.Shortened(err.Error())))
			return err
		}
		if s.Stopped() {
			return nil
		}
	} else {
		results = r.recall(s, len(entries)).recorded(part.Outcomes, len(entries))
	}
	for i := range results {
		add(s.Status, entries[i].Finding, results[i])
	}
	s.Status.DoneParts++
	return nil
}

// processPart decides about the findings of the current part. It writes the part twice: before, to mark it as begun
// unless an earlier run did, and after, to store the outcomes. If the first write is refused for long, the operation
// fails, and earlier parts can be undone. If the second is refused, the operation waits: the decisions could not be
// undone without the outcomes.
func (r *Reconciler) processPart(ctx context.Context, s *scope, entries []rules.Entry, begun bool) ([]result, error) {
	// After an outage the cache, which is asked before each write, may be far behind.
	if err := stillStored(ctx, r.Live, s.Object); err != nil {
		return nil, fmt.Errorf("read the operation: %w", err)
	}
	mem := r.remember(s, len(entries), begun)
	if !begun {
		if err := r.patchPart(ctx, s, map[string]any{"begun": true}); err != nil {
			return nil, r.partWriteError(s, err)
		}
	}
	if err := r.decideAll(ctx, s.Object, entries, begun, mem); err != nil {
		return nil, err
	}
	return mem.results, r.recordOutcomes(ctx, s, entries, mem)
}

// decideAll decides about the entries without an outcome. begun means that an earlier run has begun the part; then the
// first error ends the run. The first run continues after an error while it has time, because later runs skip findings
// that have changed since its writes, and after a restart those that have changed since the selection.
func (r *Reconciler) decideAll(ctx context.Context, operation *v1alpha1.TriageOperation, entries []rules.Entry,
	begun bool, mem *memory) error {
	writer, err := r.as(operation.Namespace)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(maxAtOnce)
	failures, refused := make([]error, len(entries)), mem.refused()
	for i := range entries {
		if mem.results[i].outcome != 0 {
			continue
		}
		group.Go(func() error {
			err := r.decideOne(inGroup, writer, operation, entries[i], i, mem)
			if !begun && ctx.Err() == nil {
				failures[i], err = err, nil
			}
			return err
		})
	}
	// Errors from before the timeout explain why it was exceeded.
	err = cmp.Or(append(failures, group.Wait())...)
	if err != nil && ctx.Err() != nil && mem.refused() > refused {
		return refusal{err} // RefusalPatience must not start again with each run, or no finding would ever fail
	}
	return err
}

// decideOne decides about the entry with that index, and remembers the result. A panic counts as a refusal.
func (r *Reconciler) decideOne(ctx context.Context, writer rest.Interface, operation *v1alpha1.TriageOperation,
	entry rules.Entry, i int, mem *memory) error {
	err := safely.Func(func() (err error) {
		mem.results[i], err = r.decide(ctx, writer, operation, mem.next(entry, i), mem.mayHaveDecided(i), &mem.sent[i])
		return err
	})()
	if stack := safely.Stack(err); stack != "" {
		ctrl.LoggerFrom(ctx).Error(err, "decide about a finding", "finding", entry.Finding, "stack", stack)
		mem.results[i], err = r.outcomeOf(operation, err)
	}
	return err
}

// errOutdated means that the finding differs from what was selected, perhaps only because the cache is behind: the set
// of an undo may have been read from the API server.
var errOutdated = errors.New("the cache may show an earlier decision")

// refusal is a usually temporary error of the API server that persists. It hides the wrapped error, which would be
// retried without a growing backoff.
type refusal struct{ error }

// decide applies the operation to one finding, and sets sent to the generation that its write is based on.
// mayHaveDecided means that an earlier run may have decided about it. The returned error is temporary.
func (r *Reconciler) decide(ctx context.Context, writer rest.Interface, operation *v1alpha1.TriageOperation,
	entry *rules.Entry, mayHaveDecided bool, sent *int64) (result, error) {
	finding := &v1alpha1.Finding{}
	key := client.ObjectKey{Namespace: operation.Namespace, Name: string(entry.Finding)}
	err := r.Client.Get(ctx, key, finding, client.UnsafeDisableDeepCopy)
	for range maxTries {
		cached := err == nil
		if !cached { // not in the cache, or the cached one is outdated
			finding = &v1alpha1.Finding{}
			if err = kube.Get(ctx, writer, key.Namespace, key.Name, finding); err != nil {
				return r.outcomeOf(operation, err)
			}
		}
		step := rules.Plan(operation, entry, finding, r.Clock.Now(), mayHaveDecided)
		if cached && step.Outcome == rules.Conflicted {
			err = errOutdated
			continue
		}
		if len(step.Triage) == 0 {
			return result{outcome: step.Outcome, why: step.Why}, nil
		}
		if err = ctx.Err(); err != nil {
			return result{}, err // the write would not be sent
		}
		if err = stillStored(ctx, r.Client, operation); err != nil {
			return result{}, err
		}
		*sent = finding.Generation
		if err = write(ctx, writer, finding, &step); err == nil {
			return result{outcome: step.Outcome}, nil
		}
		// Read the finding again after a NotFound, too, to learn whether it exists.
		if !kube.IsConflict(err) && !kube.IsNotFound(err) {
			return r.outcomeOf(operation, err)
		}
	}
	err = fmt.Errorf("each of %d writes of finding %s failed: %w", maxTries, key.Name, refusal{err})
	return r.outcomeOf(operation, err)
}

// errDeleted means that the operation has been deleted, and perhaps created again.
var errDeleted = errors.New("the operation was deleted")

// stillStored returns errDeleted once the reader shows that the operation has been deleted: nothing could undo what it
// would decide, and the next operation may have begun.
func stillStored(ctx context.Context, reader client.Reader, operation *v1alpha1.TriageOperation) error {
	stored := &v1alpha1.TriageOperation{}
	err := reader.Get(ctx, client.ObjectKeyFromObject(operation), stored, client.UnsafeDisableDeepCopy)
	if kube.IsNotFound(err) || err == nil && (stored.UID != operation.UID || !stored.DeletionTimestamp.IsZero()) {
		return errDeleted
	}
	return err
}

// outcomeOf separates permanent errors about the finding from temporary ones.
func (r *Reconciler) outcomeOf(operation *v1alpha1.TriageOperation, err error) (result, error) {
	switch {
	case kube.IsNotFound(err):
		return result{outcome: rules.Failed, why: "the finding no longer exists"}, nil
	case r.permanent(operation, err):
		return result{rules.Failed, conditions.Shortened(err.Error()), isRefusal(err)}, nil
	}
	return result{}, err
}

// permanent reports whether the API server will refuse the finding or the part again. A starting API server lacks roles
// and policies for a while, and a token may be due for renewal, so a refusal that is not about the content becomes
// permanent only after RefusalPatience. That time counts per operation: once one finding has used it up, other findings
// with repeated conflicts fail in the same run.
func (r *Reconciler) permanent(operation *v1alpha1.TriageOperation, err error) bool {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return true
	}
	return isRefusal(err) &&
		r.refused.For(client.ObjectKeyFromObject(operation), r.local.Now()) > reconcile.RefusalPatience
}

// isRefusal reports whether the API server refused a write, and may refuse it again. A panic counts too, because only a
// new version can fix it.
func isRefusal(err error) bool {
	_, is := errors.AsType[refusal](err)
	return is || safely.Stack(err) != "" || kube.IsRefusal(err)
}

func write(ctx context.Context, writer rest.Interface, finding *v1alpha1.Finding, step *rules.Step) error {
	patch, err := kube.MergePatch(finding.ResourceVersion, "spec", map[string]any{"triage": step.Triage})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, kube.CallTimeout)
	defer cancel()
	return writer.Patch(types.MergePatchType).
		Namespace(finding.Namespace).Resource("findings").Name(finding.Name).
		Param("fieldManager", v1alpha1.ControllerFieldManager).
		Body(patch).
		Do(ctx).Error()
}

// add counts the result for a finding.
func add(status *v1alpha1.TriageOperationStatus, finding v1alpha1.ResourceName, got result) {
	switch got.outcome {
	case rules.Changed:
		status.Changed++
	case rules.Unchanged:
		status.Unchanged++
	case rules.Conflicted:
		status.Conflicted++
		status.Conflicts = appendExample(status.Conflicts, finding, reasonOrUnknown(got.why))
	case rules.Failed:
		status.Failed++
		status.Failures = appendExample(status.Failures, finding, reasonOrUnknown(got.why))
	}
}

// reasonOrUnknown handles parts whose outcomes an earlier process recorded: their reasons are lost.
func reasonOrUnknown(why string) string {
	return cmp.Or(why, "not recorded")
}
