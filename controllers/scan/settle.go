package scan

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

const (
	// settleInterval is how often to check whether the last status is up to date.
	settleInterval = time.Second
	// cachePatience is how long after its end a scan waits for a last change that the cache does not show: the finding may
	// have been deleted, and an earlier importer names none.
	cachePatience = time.Minute
)

// settle records when the statuses of all findings that the scan changed are up to date.
func (r *Reconciler) settle(ctx context.Context, s *scope) error {
	if !settles(s.Object, s.Before) {
		return nil
	}
	current, err := r.cacheIsCurrent(ctx, s.Object)
	if err != nil {
		return err
	}
	pending := true
	if current || waitedLong(s.Object, s.Now) {
		if pending, err = r.pager.MoreToCome(ctx, s.Object.Namespace, webhooks.CauseOfScan(s.Object)); err != nil {
			return err
		}
	}
	if pending {
		s.RequeueAfter(settleInterval)
		s.Condition(v1alpha1.ConditionSettled, false, v1alpha1.ReasonStatusesPending,
			"The controllers are recording the statuses of the findings that the scan changed.")
		return nil
	}
	s.Condition(v1alpha1.ConditionSettled, true, v1alpha1.ReasonStatusesRecorded,
		"The status of each finding that the scan changed is recorded.")
	return nil
}

// settles reports whether the scan has ended and its statuses may not be up to date yet. Scans that ended before this
// condition existed do not get it, because each would be written again after an upgrade.
func settles(scan *v1alpha1.Scan, before *v1alpha1.ScanStatus) bool {
	if scan.Spec.Outcome == "" || scan.Uncounted() != "" {
		return false
	}
	condition := v1alpha1.FindCondition(before.Conditions, v1alpha1.ConditionSettled)
	if condition == nil {
		return !ended(before.Phase) || isAbandoned(before)
	}
	return condition.Status != metav1.ConditionTrue
}

// cacheIsCurrent reports whether the cache shows everything that the import wrote. Changes arrive in order, so it is
// enough to see the last one.
func (r *Reconciler) cacheIsCurrent(ctx context.Context, scan *v1alpha1.Scan) (bool, error) {
	last := scan.Spec.LastChange
	if last == nil {
		return changedNothing(scan.Spec.Counts), nil
	}
	finding := &v1alpha1.Finding{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: scan.Namespace, Name: last.Finding}, finding,
		client.UnsafeDisableDeepCopy)
	if kube.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	order, err := resourceversion.CompareResourceVersion(finding.ResourceVersion, last.ResourceVersion)
	if err != nil {
		return false, nil //nolint:nilerr // whoever wrote the scan named no version
	}
	return order >= 0, nil
}

func changedNothing(c *v1alpha1.ScanCounts) bool {
	return c != nil && c.Created+c.Updated+c.Closed+c.Reopened == 0
}

// waitedLong compares with the end by the importer's clock. If that is far ahead of ours, the scan waits for nothing.
func waitedLong(scan *v1alpha1.Scan, now time.Time) bool {
	return now.Sub(scan.Spec.CompletedAt.Time).Abs() > cachePatience
}
