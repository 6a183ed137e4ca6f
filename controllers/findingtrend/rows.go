package findingtrend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/patch"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	trends "github.com/appsec-dev/findings-operator/internal/findingtrend"
	"github.com/appsec-dev/findings-operator/internal/kube"
)

// countsOtherwise ignores changes that affect no row. A decision counts with the status write that records it.
var countsOtherwise = watch.Updates(func(before, after *v1alpha1.Finding) bool {
	return findingstate.State(before) != findingstate.State(after) ||
		findingstate.History(&before.Status).LastSeq() != findingstate.History(&after.Status).LastSeq() ||
		before.Spec.Details.Severity != after.Spec.Details.Severity || before.Spec.Details.Score != after.Spec.Details.Score
})

// keepRows writes the project's rows, and removes quarters past their retention. A failed removal does not stop the
// rows: the API server may refuse it for good, for example because of a cluster's own admission policy.
func (r *Reconciler) keepRows(ctx context.Context, s *scope) error {
	s.LeaveStatus()
	kept := &v1alpha1.FindingTrendList{}
	if err := index.List(ctx, r.Client, kept, s.Object.Namespace, index.Project, s.Object.Name); err != nil {
		return err
	}
	return errors.Join(r.writeRows(ctx, s, kept.Items), r.retire(ctx, s, kept.Items))
}

// writeRows counts the project's findings, unless its rows were written within the hour, and stores the rows that
// differ.
func (r *Reconciler) writeRows(ctx context.Context, s *scope, kept []v1alpha1.FindingTrend) error {
	last, written := latest(kept)
	if wait := minInterval - s.Now.Sub(written); wait > 0 {
		s.RequeueAfter(min(wait, minInterval)) // the clock may have been set back
		return nil
	}
	findings := &v1alpha1.FindingList{}
	if err := index.List(ctx, r.Client, findings, s.Object.Namespace, index.Project, s.Object.Name); err != nil {
		return err
	}
	if r.awaitsStatuses(s, findings.Items) {
		return nil
	}
	rows := map[v1alpha1.Quarter][]v1alpha1.FindingTrendDay{}
	for _, row := range trends.Continue(last, written, findings.Items, s.Now) {
		quarter := trends.QuarterOf(row.Day)
		rows[quarter] = append(rows[quarter], row)
	}
	// Store them in order and stop at the first failure, because the last stored row shows how far the rows are complete.
	quarters := slices.Sorted(maps.Keys(rows))
	for i, quarter := range quarters {
		until := s.Now
		if i < len(quarters)-1 {
			until = trends.EndOf(quarter)
		}
		if stored, err := r.store(ctx, s, quarter, rows[quarter], kept, until); err != nil || !stored {
			return err
		}
	}
	r.waits.Forget(client.ObjectKeyFromObject(s.Object))
	return nil
}

// awaitsStatuses requeues and returns true while a status has yet to be recorded: only statuses record the day of a
// change, and days before the last row are not counted again. After some time it returns false, so that one status that
// cannot be stored does not stop the rows.
func (r *Reconciler) awaitsStatuses(s *scope, findings []v1alpha1.Finding) bool {
	project := client.ObjectKeyFromObject(s.Object)
	if areRecorded(findings) {
		r.waits.Forget(project)
		return false
	}
	if r.waits.For(project, s.Now) >= patience {
		return false
	}
	s.RequeueAfter(gatherDelay)
	return true
}

// areRecorded reports whether the status of each finding is up to date, except for findings that are being deleted.
func areRecorded(findings []v1alpha1.Finding) bool {
	for i := range findings {
		if f := &findings[i]; f.DeletionTimestamp.IsZero() && !findingstate.IsRecorded(f) {
			return false
		}
	}
	return true
}

// latest returns the last row of all quarters, nil if there is none, and the time of the last write to
// any of them.
func latest(kept []v1alpha1.FindingTrend) (last *v1alpha1.FindingTrendDay, written time.Time) {
	for i := range kept {
		spec := &kept[i].Spec
		if spec.UpdatedAt.After(written) {
			written = spec.UpdatedAt.Time
		}
		if n := len(spec.Days); n > 0 && (last == nil || last.Day < spec.Days[n-1].Day) {
			last = &spec.Days[n-1]
		}
	}
	return last, written
}

// store puts the rows into the object of their quarter, which is then complete up to until. If the object exists but
// the cache does not show it, store returns false and requeues.
func (r *Reconciler) store(ctx context.Context, s *scope, quarter v1alpha1.Quarter, rows []v1alpha1.FindingTrendDay,
	kept []v1alpha1.FindingTrend, until time.Time) (stored bool, err error) {
	for i := range kept {
		before := &kept[i]
		if before.Spec.Quarter != quarter {
			continue
		}
		after := before.DeepCopy()
		put(&after.Spec, rows, until)
		if err := r.Client.Patch(ctx, after, patch.Locked(before)); err != nil {
			return false, fmt.Errorf("write the trend %s: %w", after.Name, err)
		}
		return true, nil
	}
	trend := newTrend(s.Object, quarter)
	put(&trend.Spec, rows, until)
	err = r.Client.Create(ctx, trend)
	if kube.IsAlreadyExists(err) {
		// The cache does not show it yet, or it belongs to an earlier project of the same name and will be deleted.
		s.RequeueAfter(gatherDelay)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("create the trend %s: %w", trend.Name, err)
	}
	return true, nil
}

func put(spec *v1alpha1.FindingTrendSpec, rows []v1alpha1.FindingTrendDay, now time.Time) {
	for _, row := range rows {
		spec.Days = trends.Put(spec.Days, row)
	}
	spec.UpdatedAt = v1alpha1.NewTime(now)
}

// newTrend returns an empty trend. There are few, so the garbage collector can remove them with their project.
func newTrend(project *v1alpha1.Project, quarter v1alpha1.Quarter) *v1alpha1.FindingTrend {
	return &v1alpha1.FindingTrend{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: project.Namespace, Name: kube.SuffixedName(project.Name, "-"+string(quarter)),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "Project", Name: project.Name, UID: project.UID,
				Controller: new(true),
			}},
		},
		Spec: v1alpha1.FindingTrendSpec{
			ProjectRef: v1alpha1.ProjectReference{Name: v1alpha1.ResourceName(project.Name)}, Quarter: quarter,
		},
	}
}

// retire removes quarters past their retention, and requeues for the next one. The newest of them stays, because the
// following days equal its last row until there is another one. A refused removal does not stop the others.
func (r *Reconciler) retire(ctx context.Context, s *scope, kept []v1alpha1.FindingTrend) error {
	var past []*v1alpha1.FindingTrend
	for i := range kept {
		keep := trends.EndOf(kept[i].Spec.Quarter).AddDate(v1alpha1.TrendYears, 0, 0).Sub(s.Now)
		if keep > 0 {
			s.RequeueAfter(min(keep, maxWait))
			continue
		}
		past = append(past, &kept[i])
	}
	slices.SortFunc(past, func(a, b *v1alpha1.FindingTrend) int { return cmp.Compare(b.Spec.Quarter, a.Spec.Quarter) })
	var failed error
	for _, trend := range past[min(1, len(past)):] {
		same := client.Preconditions{UID: new(trend.UID)}
		if err := r.Client.Delete(ctx, trend, same); kube.IgnoreNotFound(err) != nil {
			failed = errors.Join(failed, fmt.Errorf("remove the trend %s: %w", trend.Name, err))
		}
	}
	return failed
}
