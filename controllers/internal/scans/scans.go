// Package scans lists scans, and derives from such a list when a subject was scanned.
package scans

import (
	"cmp"
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

// Of lists the scans that name an object in the field: a Project in index.Project, a Repository in index.Repository.
func Of(ctx context.Context, c client.Reader, object client.Object, field string) ([]v1alpha1.Scan, error) {
	list := &v1alpha1.ScanList{}
	err := index.List(ctx, c, list, object.GetNamespace(), field, object.GetName())
	return list.Items, err
}

// OfBranch lists only the scans of the scan branch, not those of pull requests or of refused uploads.
func OfBranch(ctx context.Context, c client.Reader, object client.Object, field string) ([]v1alpha1.Scan, error) {
	scans, err := Of(ctx, c, object, field)
	return slices.DeleteFunc(scans, func(s v1alpha1.Scan) bool { return s.IsOfReview() || s.IsRefused() }), err
}

// CountsOtherwise ignores updates of a scan, such as of its progress, that change neither its phase nor whether
// OfBranch, LastStarted or LastSuccess return it: thousands of scans may belong to a repository. Everything else that
// these read of a scan is immutable.
var CountsOtherwise = watch.Updates(func(before, after *v1alpha1.Scan) bool {
	return before.UID != after.UID || before.Status.Phase != after.Status.Phase ||
		before.Spec.Outcome != after.Spec.Outcome || !before.Spec.CompletedAt.Equal(after.Spec.CompletedAt)
})

// LastStarted returns the scan that was started last; nil if there is none. Of two scans started in
// the same second it prefers the one recorded last, then the one with the greater name, so that the
// result does not depend on the order of the list.
func LastStarted(scans []v1alpha1.Scan) *v1alpha1.Scan {
	var last *v1alpha1.Scan
	for i := range scans {
		if last == nil || compareStart(&scans[i], last) > 0 {
			last = &scans[i]
		}
	}
	return last
}

func compareStart(a, b *v1alpha1.Scan) int {
	return cmp.Or(
		a.Began().Compare(b.Began()),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

// compareEnd compares scans that have succeeded by their completion, then as compareStart does.
func compareEnd(a, b *v1alpha1.Scan) int {
	return cmp.Or(a.Spec.CompletedAt.Compare(b.Spec.CompletedAt.Time), compareStart(a, b))
}

// LastSuccess returns the latest completion time of a successful scan; nil if there is none.
func LastSuccess(scans []v1alpha1.Scan) *v1alpha1.Time {
	var last *v1alpha1.Time
	for i := range scans {
		completed := scans[i].Spec.CompletedAt
		if succeeded(&scans[i]) && (last == nil || last.Before(completed)) {
			last = completed
		}
	}
	return last.DeepCopy()
}

// IsLast reports whether the scan is needed to know what was scanned last: it is the last started
// scan, the last started successful scan, or the last scan to succeed. While these are kept,
// removing other scans changes neither LastStarted nor LastSuccess.
func IsLast(scan *v1alpha1.Scan, list []v1alpha1.Scan) bool {
	return isGreatest(scan, list, every, compareStart) || isGreatest(scan, list, succeeded, compareStart) ||
		isGreatest(scan, list, succeeded, compareEnd)
}

// IsLastToWrite reports whether the scan is the last started one that got as far as writing findings.
func IsLastToWrite(scan *v1alpha1.Scan, list []v1alpha1.Scan) bool {
	return isGreatest(scan, list, (*v1alpha1.Scan).WroteFindings, compareStart)
}

// IsFirstSuccess reports whether the scan is the successful one that started first.
func IsFirstSuccess(scan *v1alpha1.Scan, list []v1alpha1.Scan) bool {
	return isGreatest(scan, list, succeeded, func(a, b *v1alpha1.Scan) int { return compareStart(b, a) })
}

// isGreatest reports whether the scan matches and no other matching scan compares greater.
func isGreatest(scan *v1alpha1.Scan, list []v1alpha1.Scan, matches func(*v1alpha1.Scan) bool,
	compare func(a, b *v1alpha1.Scan) int) bool {
	if !matches(scan) {
		return false
	}
	for i := range list {
		if matches(&list[i]) && compare(&list[i], scan) > 0 {
			return false
		}
	}
	return true
}

func every(*v1alpha1.Scan) bool { return true }

func succeeded(scan *v1alpha1.Scan) bool {
	return scan.Spec.Outcome == v1alpha1.ScanSucceeded && scan.Spec.CompletedAt != nil
}
