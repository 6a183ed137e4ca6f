package triageoperation

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/audit"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/internal/findingquery"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/safely"
	rules "github.com/appsec-dev/findings-operator/internal/triageoperation"
)

// maxCommentBytes bounds the comments that an operation writes, since each finding stores its own copy: 671 bytes per
// finding for an operation of the maximum size.
const maxCommentBytes = 32 << 20

// selected is one finding of the set, with its entry. The finding is nil if it no longer exists.
type selected struct {
	entry   rules.Entry
	finding *v1alpha1.Finding
}

// selectFindings makes the set, once. An operation that is not committed goes no further.
func (r *Reconciler) selectFindings(ctx context.Context, s *scope) error {
	if s.Status.SelectedAt == nil {
		s.Status.Phase = v1alpha1.OperationSelecting
		err := safely.Func(func() error { return r.makeSet(ctx, s) })()
		if stack := safely.Stack(err); stack != "" {
			ctrl.LoggerFrom(ctx).Error(err, "select the findings", "stack", stack)
			err = r.selectionPanicked(s, err)
		}
		if err != nil {
			inProgress(s, fmt.Sprintf("The selection failed and is being retried: %q.", conditions.Shortened(err.Error())))
		}
		if err != nil || s.Stopped() {
			return err
		}
	}
	if !s.Object.Spec.Commit {
		preview(s)
		return nil
	}
	if s.Status.Phase != v1alpha1.OperationRunning {
		if rules.Ended(s.Object, s.Now) {
			fail(s, v1alpha1.ReasonOperationExpired,
				"The end of the decision, spec.set.expiresAt, has passed: create another operation.")
			return nil
		}
		// Store the set and the phase before deciding: after a restart, other findings must not be selected, and an operation
		// that has decided must not fail as if it had not.
		audit.Operation(r.audit, s.Object)
		s.Stop()
		s.RequeueAfter(nextPartDelay)
	}
	s.Status.Phase = v1alpha1.OperationRunning
	inProgress(s, "The operation is processing its findings.")
	return nil
}

// selectionPanicked returns the panic that ended the selection. Once it has been repeated for RefusalPatience, the
// operation fails, so that the next ones get their turn.
func (r *Reconciler) selectionPanicked(s *scope, err error) error {
	*s.Status = *s.Before.DeepCopy() // else the next try would add to what this one has recorded
	s.Status.ObservedGeneration, s.Status.Phase = s.Object.Generation, v1alpha1.OperationSelecting
	if !r.permanent(s.Object, err) {
		return err
	}
	fail(s, v1alpha1.ReasonSelectionFailed, fmt.Sprintf("A fault of the controllers ended each try to select the findings: %q. "+
		"Nothing was decided: report the fault, with the stack from their log.", conditions.Shortened(err.Error())))
	return nil
}

// makeSet selects the findings and stores them in parts, unless the operation fails or has to wait: then it stops the
// reconcile.
func (r *Reconciler) makeSet(ctx context.Context, s *scope) error {
	if err := r.awaitCache(ctx, s); err != nil || s.Stopped() {
		return err
	}
	all, err := r.operations(ctx, s.Object.Namespace)
	if err != nil {
		return err
	}
	set, err := r.selectSet(ctx, s)
	if err != nil || s.Stopped() {
		return err
	}
	if s.Status.Matched > v1alpha1.MaxOperationFindings {
		fail(s, v1alpha1.ReasonTooManyFindings,
			"More findings match than one operation may cover: narrow the selection, or decide by a TriagePolicy.")
		return nil
	}
	if commentBytes(s.Object)*int(s.Status.Matched) > maxCommentBytes {
		fail(s, v1alpha1.ReasonTooManyFindings, "The comments are too long for so many findings, of which each stores them: "+
			"shorten them, or narrow the selection.")
		return nil
	}
	return r.saveSet(ctx, s, set, partsOf(all))
}

// commentBytes returns the length of the comments that the operation writes to each finding.
func commentBytes(operation *v1alpha1.TriageOperation) int {
	if set := operation.Spec.Set; set != nil && set.Comments != nil {
		return len(*set.Comments)
	}
	return 0
}

// tooMany fails the operation because of the reached limit.
func tooMany(s *scope, limit string) {
	fail(s, v1alpha1.ReasonTooManyOperations,
		limit+": delete some that need no undo, or shorten its spec.retention.finishedOperations.")
}

// awaitCache requeues the operation if the set was made but the cache does not show it yet.
func (r *Reconciler) awaitCache(ctx context.Context, s *scope) error {
	made, err := r.setMade(ctx, s.Object)
	if err != nil || !made {
		return err
	}
	s.LeaveStatus()
	s.RequeueAfter(cacheRecheck)
	s.Stop()
	return nil
}

// setMade reports whether the operation in the API server has its set already, or was created again under the same
// name.
func (r *Reconciler) setMade(ctx context.Context, operation *v1alpha1.TriageOperation) (bool, error) {
	stored := &v1alpha1.TriageOperation{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(operation), stored); err != nil {
		return false, err
	}
	return stored.UID != operation.UID || stored.Status.SelectedAt != nil, nil
}

// selectSet returns the set, sorted by name. It stops the reconcile if the operation fails or has to wait.
func (r *Reconciler) selectSet(ctx context.Context, s *scope) ([]selected, error) {
	var set []selected
	var err error
	switch {
	case s.Object.Spec.Undo != "":
		set, err = r.selectUndone(ctx, s)
	case len(s.Object.Spec.Select.IDs) > 0:
		set, err = r.selectNamed(ctx, s)
	default:
		set, err = r.selectMatching(ctx, s)
	}
	slices.SortFunc(set, func(a, b selected) int { return cmp.Compare(a.entry.Finding, b.entry.Finding) })
	return set, err
}

// selectNamed returns the findings that the operation names. Those missing in the cache are read from the API server,
// since they may be new. Findings that do not exist stay in the set, and are never changed.
func (r *Reconciler) selectNamed(ctx context.Context, s *scope) ([]selected, error) {
	var set []selected
	for _, id := range s.Object.Spec.Select.IDs {
		finding := &v1alpha1.Finding{}
		key := client.ObjectKey{Namespace: s.Object.Namespace, Name: string(id)}
		err := r.Client.Get(ctx, key, finding, client.UnsafeDisableDeepCopy)
		if kube.IsNotFound(err) {
			finding, err = r.liveFinding(ctx, key)
		}
		switch {
		case kube.IsNotFound(err):
			set = append(set, selected{entry: rules.Absent(id)})
		case err != nil:
			return nil, fmt.Errorf("read finding %q: %w", id, err)
		case finding.DeletionTimestamp.IsZero():
			set = append(set, selected{rules.Select(s.Object, finding, s.Now), finding})
		}
	}
	s.Status.Matched = int32(len(set)) //nolint:gosec // bounded
	return set, nil
}

// liveFinding reads a finding from the API server. It returns NotFound for one that cannot be decoded, like kube.Get.
func (r *Reconciler) liveFinding(ctx context.Context, key client.ObjectKey) (*v1alpha1.Finding, error) {
	stored, finding := &unstructured.Unstructured{}, &v1alpha1.Finding{}
	stored.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Finding"))
	if err := r.Live.Get(ctx, key, stored); err != nil {
		return nil, err
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, finding) != nil {
		return nil, apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("findings").GroupResource(), key.Name)
	}
	return finding, nil
}

// selectMatching returns the findings that match the filters. An operation that is already committed may have waited
// for its turn: it leaves out findings created in a later second than itself, which nobody had seen when it was made.
func (r *Reconciler) selectMatching(ctx context.Context, s *scope) ([]selected, error) {
	selection, err := findingquery.NewSelection(s.Object.Spec.Select)
	if err != nil {
		why := conditions.Shortened(err.Error())
		fail(s, v1alpha1.ReasonInvalidSelection, fmt.Sprintf("The selection cannot be read: %q.", why))
		return nil, nil
	}
	list := &v1alpha1.FindingList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the findings: %w", err)
	}
	owners, err := r.owners(ctx, s)
	if err != nil {
		return nil, err
	}
	var set []selected
	s.Status.Matched = 0
	for i := range list.Items {
		finding := &list.Items[i]
		unseen := s.Object.Spec.Commit && finding.CreationTimestamp.After(s.Object.CreationTimestamp.Time)
		if !finding.DeletionTimestamp.IsZero() || unseen || !selection.Matches(finding, owners) {
			continue
		}
		// Count all matches, but make entries only up to the limit of an operation.
		if s.Status.Matched++; s.Status.Matched <= v1alpha1.MaxOperationFindings {
			set = append(set, selected{rules.Select(s.Object, finding, s.Now), finding})
		}
	}
	return set, nil
}

// owners returns the owners of the namespace's projects, if the operation filters by owner.
func (r *Reconciler) owners(ctx context.Context, s *scope) (findingquery.Owners, error) {
	ownerOf := map[v1alpha1.ResourceName]string{}
	if s.Object.Spec.Select.Owner != "" {
		list := &v1alpha1.ProjectList{}
		if err := r.Client.List(ctx, list, client.InNamespace(s.Object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the projects: %w", err)
		}
		for i := range list.Items {
			ownerOf[v1alpha1.ResourceName(list.Items[i].Name)] = list.Items[i].Spec.Owner
		}
	}
	return func(project v1alpha1.ResourceName) string { return ownerOf[project] }, nil
}

// saveSet stores the set in parts, and records what the operation would do. kept is the number of parts that the
// organization already has.
func (r *Reconciler) saveSet(ctx context.Context, s *scope, set []selected, kept int) error {
	entries := make([]rules.Entry, len(set))
	for i := range set {
		entries[i] = set[i].entry
	}
	parts, lost, err := rules.Parts(s.Object, entries)
	if err != nil {
		return err
	}
	if kept+len(parts) > rules.Limit(s.Object, maxParts) {
		tooMany(s, "The sets of the organization's operations would have more parts than allowed")
		return nil
	}
	for _, part := range parts {
		if err := r.savePart(ctx, s.Object, part); err != nil {
			return r.partWriteError(s, fmt.Errorf("store part %s: %w", part.Name, err))
		}
	}
	recordPreview(s, set)
	s.Status.NotUndoable, s.Status.Parts, s.Status.SelectedAt = lost, int32(len(parts)), now(s) //nolint:gosec // bounded
	return nil
}

// recordPreview records in the status what the operation would do.
func recordPreview(s *scope, set []selected) {
	deciders := map[string]int32{}
	for i := range set {
		c := &set[i]
		if i < v1alpha1.MaxOperationSamples {
			s.Status.Samples = append(s.Status.Samples, c.entry.Finding)
		}
		if c.finding == nil {
			continue
		}
		if step := rules.Plan(s.Object, &c.entry, c.finding, s.Now, false); len(step.Triage) > 0 {
			s.Status.WouldChange++
		}
		if findingstate.Decided(c.finding) {
			deciders[c.finding.Spec.Triage.By]++
		} else if verdict := findingstate.Verdict(c.finding); verdict != nil && verdict.ReviewIssue != "" {
			deciders[verdict.By]++ // counted like a decision of its own: muting or confirming overrules it
		}
	}
	for by, count := range deciders {
		s.Status.Decided = append(s.Status.Decided, v1alpha1.OperationDecider{By: by, Count: count})
	}
	slices.SortFunc(s.Status.Decided, func(a, b v1alpha1.OperationDecider) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.By, b.By))
	})
	s.Status.Decided = s.Status.Decided[:min(len(s.Status.Decided), v1alpha1.MaxOperationDeciders)]
}
