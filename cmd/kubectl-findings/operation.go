package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
)

const (
	// nameLetters is the length of the random suffix that distinguishes operations that do the same.
	nameLetters = 6
	// untilNoticed is how soon a running controller picks up an operation.
	untilNoticed = time.Minute
)

// nothingMatches is printed when a selection is empty.
const nothingMatches = "nothing matches the filters"

var errNotNoticed = fmt.Errorf("no controller has taken it up in %s: check whether findings-operator runs", untilNoticed)

var errTakesLonger = errors.New("it takes longer")

// operating takes a TriageOperation from the preview to its end.
type operating struct {
	*triageOptions
	session  *session
	decision decision
	// name and uid are those of operation, which is empty after an unreadable response. uid is empty until it is known.
	name      string
	uid       types.UID
	operation *v1alpha1.TriageOperation
	// unanswered means that an attempt of the last write of it had an unknown outcome: unless it was a dry run, it may be
	// stored.
	unanswered bool
	summary    *bulkSummary
	// progress is shown once the operation is committed.
	progress *progress
	// lastReason is the last printed reason for waiting.
	lastReason string
}

func (w *operating) run(ctx context.Context) error {
	if err := w.make(ctx); err != nil {
		if w.unanswered {
			err = errors.Join(err, w.discard(ctx, false))
		}
		return err
	}
	agreed, err := w.propose(ctx)
	if !agreed {
		if err != nil && ctx.Err() != nil {
			err = errInterrupted
		}
		return errors.Join(err, w.discard(ctx, false))
	}
	if err := w.commit(ctx); err != nil {
		if w.unanswered && !isRefused(err) {
			return w.errUnknown(err)
		}
		// This deletes the operation, unless an earlier attempt was stored.
		return errors.Join(err, w.discard(ctx, w.unanswered))
	}
	if err := w.finish(ctx); err != nil {
		return err
	}
	return w.report(ctx)
}

// isRefused reports whether the API server has refused the last attempt of a write. An earlier attempt may be stored.
func isRefused(err error) bool { return kube.StatusOf(err).Code != 0 && !kube.IsOutcomeUnknown(err) }

// errUnknown returns err with what to do if the operation may be committed.
func (w *operating) errUnknown(err error) error {
	return fmt.Errorf("it is not known whether operation %s was committed: %w\n%s", w.name, err, w.whatNext())
}

// make creates the operation without committing it.
func (w *operating) make(ctx context.Context) error {
	if err := w.session.checkOrganization(ctx); err != nil {
		return err
	}
	w.operation = &v1alpha1.TriageOperation{}
	if w.undo != "" {
		w.operation.Spec.Undo = v1alpha1.ResourceName(w.undo)
		if err := w.session.get(ctx, w.undo, &v1alpha1.TriageOperation{}); err != nil {
			return w.session.notFound(ctx, err, w.need(w.undo))
		}
	} else {
		w.operation.Spec.Select, w.operation.Spec.Set = &w.filter.selection, w.decision.set()
	}
	w.name = w.wording().verb + "-" + rand.String(nameLetters)
	w.operation.Namespace, w.operation.Name = w.session.namespace, w.name
	return w.create(ctx)
}

func (w *operating) create(ctx context.Context) error {
	err := w.write(ctx, func() error {
		err := w.session.create(ctx, w.operation)
		if w.unanswered && kube.IsAlreadyExists(err) {
			return nil // created by an earlier attempt
		}
		return err
	})
	w.uid = w.operation.UID
	if kube.IsNotFound(err) {
		return errors.Join(w.session.checkPlace(ctx), err)
	}
	return w.session.explain(err, w.need(""))
}

func (w *operating) need(name string) need {
	return need{what: "triage findings", role: roleTriager, kind: kindOperation, name: name}
}

// errCommitted is for an operation that another client has committed, or this one without an answer. An operation that
// is deleted can no longer be undone.
var errCommitted = errors.New("it is committed")

// discard deletes an operation that was not committed, or whose commit may be stored although it failed.
func (w *operating) discard(ctx context.Context, mayBeCommitted bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	unsure := mayBeCommitted
	err := withRetries(ctx, func() error {
		stored := &v1alpha1.TriageOperation{}
		if err := w.session.get(ctx, w.name, stored); err != nil {
			return err
		}
		if w.uid != "" && w.uid != stored.UID { // another one, of somebody else
			return replaced(stored)
		}
		if stored.Spec.Commit {
			return errCommitted
		}
		unsure = false
		unchanged := client.Preconditions{UID: &stored.UID, ResourceVersion: &stored.ResourceVersion}
		return w.session.client.Delete(ctx, stored, unchanged)
	})
	switch gone := kube.IsNotFound(err); {
	case err == nil, gone && !unsure:
		return nil
	case errors.Is(err, errCommitted):
		return fmt.Errorf("the operation %s was not deleted: %w; undo it with: %s", w.name, err, w.undoing())
	case gone:
		return fmt.Errorf("it is not known whether operation %s was committed before it was deleted: what it decided stays\n%s",
			w.name, w.listDecided())
	case unsure:
		return w.errUnknown(err)
	}
	return fmt.Errorf("the operation %s, which is not committed, may be left behind: it could not be deleted: %w\n"+
		"It decides nothing, and is removed after a day; to delete it at once: %s",
		w.name, err, w.session.command("delete", "triageoperation", w.name))
}

// commit commits the operation that was shown, and not another one that has been created under its name since.
func (w *operating) commit(ctx context.Context, options ...client.PatchOption) error {
	committed := client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"commit":true}}`, w.uid))
	err := w.write(ctx, func() error {
		return w.session.patch(ctx, w.operation.DeepCopy(), committed, options...)
	})
	if kube.HasOtherUID(err) {
		err = fmt.Errorf("%w, which stays", replaced(w.operation))
	}
	if kube.IsNotFound(err) && !w.unanswered {
		return undecided(err)
	}
	return w.session.explain(err, w.need(""))
}

// undecided adds what follows from an operation that somebody has deleted before its commit.
func undecided(err error) error {
	return fmt.Errorf("%w\nThis command decided nothing: run it again", err)
}

// write retries a write of the operation, and sets unanswered.
func (w *operating) write(ctx context.Context, try func() error) error {
	w.unanswered = false
	return withRetries(ctx, func() error {
		err := try()
		w.unanswered = w.unanswered || kube.IsOutcomeUnknown(err)
		return err
	})
}

// await waits until the operation is in one of the phases, at most for --timeout. It returns an error if the operation
// fails.
func (w *operating) await(ctx context.Context, seen func(), phases ...v1alpha1.OperationPhase) error {
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, w.timeout, fmt.Errorf("%w than %s", errTakesLonger, w.timeout))
	defer cancelTimeout()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var unnoticed *time.Timer // starts with the first successful read: before it, the API server may be unavailable
	err := w.session.await(ctx, w.operation, func() (bool, error) {
		w.uid = w.operation.UID
		phase := w.operation.Status.Phase
		switch {
		case unnoticed == nil && phase == "":
			unnoticed = time.AfterFunc(untilNoticed, func() { cancel(errNotNoticed) })
		case unnoticed != nil && phase != "":
			unnoticed.Stop()
		}
		seen()
		switch {
		case slices.Contains(phases, phase):
			return true, nil
		case phase == v1alpha1.OperationFailed:
			return false, errors.New(cmp.Or(v1alpha1.StalledMessage(w.operation.Status.Conditions), "it has failed"))
		}
		w.reportWait()
		return false, nil
	})
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("operation %s: %w", w.name, err)
	}
	return nil
}

// reportWait prints why the operation is not ready yet and how far it is, when the reason changes.
func (w *operating) reportWait() {
	ready := v1alpha1.FindCondition(w.operation.Status.Conditions, v1alpha1.ConditionReady)
	if w.quiet || ready == nil || ready.Status != metav1.ConditionFalse || ready.Message == w.lastReason {
		return
	}
	w.lastReason = ready.Message
	if w.progress != nil {
		w.progress.finish() // a bar is drawn again with the next change
	}
	soFar := ""
	if w.operation.Status.Phase == v1alpha1.OperationRunning {
		soFar = fmt.Sprintf(", %d of %d findings done", w.done(), w.operation.Status.Matched)
	}
	fmt.Fprintf(w.streams.ErrOut, "operation %s%s: %s\n", w.name, soFar, printable(ready.Message))
}

// done returns how many findings the operation has processed.
func (w *operating) done() int {
	s := &w.operation.Status
	return int(s.Changed + s.Unchanged + s.Conflicted + s.Failed)
}

// propose shows what the operation would do and asks for confirmation. If nothing remains to be done, it prints the
// summary.
func (w *operating) propose(ctx context.Context) (agreed bool, err error) {
	if err := w.await(ctx, func() {}, v1alpha1.OperationPreview); err != nil {
		switch {
		case errors.Is(err, errTakesLonger):
			err = fmt.Errorf("%w\nNothing was decided: try again, or raise --timeout", err)
		case kube.IsNotFound(err):
			err = undecided(err)
		default:
			err = w.session.explain(err, w.need(w.name))
		}
		return false, err
	}
	status := &w.operation.Status
	over := w.dryRun != dryRunNone || status.WouldChange == 0
	if over || !w.quiet {
		if err := w.preview(ctx); err != nil {
			return false, err
		}
	}
	if w.dryRun == dryRunServer {
		if err := w.commit(ctx, client.DryRunAll); err != nil {
			return false, err
		}
	}
	if over {
		return false, w.endUncommitted(ctx)
	}
	agreed, err = confirm(ctx, w.streams, w.yes, fmt.Sprintf("%s %d findings in namespace %s",
		w.wording().imperative, status.WouldChange, w.session.namespace))
	if !agreed && err == nil {
		fmt.Fprintln(w.streams.ErrOut, "nothing was written")
	}
	return agreed, err
}

// endUncommitted prints the summary of an operation that is not to be committed, and why it may change nothing.
func (w *operating) endUncommitted(ctx context.Context) (err error) {
	status := &w.operation.Status
	if w.summary.total() == 0 {
		err = w.session.checkAsked(ctx, w.filter.named()...)
	}
	if err == nil && w.undo == "" && status.Matched == 0 {
		fmt.Fprintln(w.streams.ErrOut, nothingMatches)
		if options, err := w.filter.options(w.session.namespace); err == nil {
			w.session.noteUnused(ctx, options.FieldSelector)
		}
	}
	if status.WouldChange == 0 {
		w.noteUndone(ctx)
	}
	return errors.Join(err, w.conclude())
}

// noteUndone prints which operation has already undone the one to be undone.
func (w *operating) noteUndone(ctx context.Context) {
	if by := w.undoneBy(ctx); by != "" {
		fmt.Fprintf(w.streams.ErrOut, "%s was undone already by %s\n", w.undo, by)
	}
}

// undoneBy returns the name of an operation that has undone the one to be undone, and was not undone itself; "" if none
// is known.
func (w *operating) undoneBy(ctx context.Context) string {
	if w.undo == "" {
		return ""
	}
	var undos []string
	undone := map[string]bool{}
	err := w.session.eachPage(ctx, kindOperation, 0, w.session.inNamespace(),
		func(items []unstructured.Unstructured) error {
			for _, item := range items {
				o, err := decode[v1alpha1.TriageOperation](item)
				if err != nil || o.Status.Phase != v1alpha1.OperationCompleted || o.Status.Changed == 0 {
					continue
				}
				if undone[string(o.Spec.Undo)] = true; string(o.Spec.Undo) == w.undo {
					undos = append(undos, o.Name)
				}
			}
			return nil
		})
	undos = slices.DeleteFunc(undos, func(name string) bool { return undone[name] })
	if err != nil || len(undos) == 0 {
		return ""
	}
	return undos[0]
}

// wording returns the words for the operation.
func (w *operating) wording() wording {
	if w.undo != "" {
		return wording{"undo", "undo " + w.undo + " for", "restored"}
	}
	return w.decision.wording()
}

// finish waits until the operation has processed all its findings.
func (w *operating) finish(ctx context.Context) error {
	w.lastReason = "" // the next phase may wait for the same reason
	w.progress = newProgress(w.streams.ErrOut, w.quiet, "findings")
	err := w.await(ctx, func() {
		w.progress.at(w.done(), int(w.operation.Status.Matched))
	}, v1alpha1.OperationCompleted)
	w.progress.finish()
	status := &w.operation.Status
	switch {
	case status.Phase == v1alpha1.OperationFailed && status.Changed > 0:
		return fmt.Errorf("%w\nBefore that it changed %d of %d findings.\n%s", err, status.Changed, status.Matched,
			w.undoIt())
	case kube.IsNotFound(err):
		return fmt.Errorf("%w\nIt was deleted. What it decided before that stays, and cannot be undone.\n%s", err,
			w.listDecided())
	case err == nil, status.Phase == v1alpha1.OperationFailed:
		return err
	case ctx.Err() != nil:
		err = fmt.Errorf("operation %s: interrupted", w.name)
	}
	err = w.session.explain(err, w.need(w.name))
	return fmt.Errorf("%w\nThe operation continues in the cluster.\n%s", err, w.whatNext())
}

// whatNext describes how to follow and to undo an operation that may be committed.
func (w *operating) whatNext() string {
	return "See how far it is with: " + w.session.command("get", "triageoperation", w.name) + "\n" + w.undoIt()
}

// listDecided returns the line that describes how to list the findings that the operation has decided about.
func (w *operating) listDecided() string {
	format := fmt.Sprintf(`jsonpath={range .items[?(@.spec.triage.by=='%s')]}{.metadata.name}{'\n'}{end}`,
		rules.Author(w.name))
	return "List these findings with: " + w.session.command("findings", "list", "-o", format)
}

// undoIt returns the line that describes how to undo the operation.
func (w *operating) undoIt() string { return "Undo it with: " + w.undoing() }

// undoing returns the command that undoes the operation.
func (w *operating) undoing() string {
	return w.session.command("findings", "triage", "--undo", w.name)
}

// report prints the outcome for the findings.
func (w *operating) report(ctx context.Context) error {
	reasons := map[string]string{}
	for _, list := range [][]v1alpha1.OperationExample{w.operation.Status.Conflicts, w.operation.Status.Failures} {
		for _, example := range list {
			reasons[string(example.Finding)] = example.Message
		}
	}
	w.summary = w.newSummary(w.session.namespace, w.wording().past) // discard the preview
	w.summary.Operation, w.summary.undo = w.name, w.undoing()
	err := w.eachEntry(ctx, func(entry *rules.Entry, outcome rules.Outcome) error {
		w.summary.add(string(entry.Finding), outcome, reasons[string(entry.Finding)])
		return nil
	})
	if err != nil {
		return fmt.Errorf("operation %s is completed, but its parts cannot be read: %w\n%s", w.name, err, w.whatNext())
	}
	return w.conclude()
}

// eachEntry calls visit for the findings of the operation's set, in the order of their names.
func (w *operating) eachEntry(ctx context.Context, visit func(*rules.Entry, rules.Outcome) error) error {
	for i := range int(w.operation.Status.Parts) {
		part := &v1alpha1.TriageOperationPart{}
		err := withRetries(ctx, func() error { return w.session.get(ctx, rules.PartName(w.name, i), part) })
		if err != nil {
			return err
		}
		entries, err := rules.Decode(part)
		if err != nil {
			return err
		}
		for j := range entries {
			outcome := rules.Outcome(0)
			if j < len(part.Spec.Outcomes) {
				outcome = rules.Outcome(part.Spec.Outcomes[j])
			}
			if err := visit(&entries[j], outcome); err != nil {
				return err
			}
		}
	}
	return nil
}

// conclude prints the summary and returns the error of the command as a whole.
func (w *operating) conclude() error {
	summary := w.summary
	return errors.Join(summary.print(w.streams.Out, w.output), summary.err())
}
