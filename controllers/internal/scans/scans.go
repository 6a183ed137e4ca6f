// Package scans derives from scans when a subject was scanned.
package scans

import (
	"cmp"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/watch"
)

// CountsOtherwise ignores updates of a scan, such as of its progress, that change neither its phase nor whether a
// Latest returns it: thousands of scans may belong to a repository. Everything else that it reads of a scan is
// immutable.
var CountsOtherwise = watch.Updates(func(before, after *v1alpha1.Scan) bool {
	return before.UID != after.UID || before.Status.Phase != after.Status.Phase ||
		before.Spec.Outcome != after.Spec.Outcome || !before.Spec.CompletedAt.Equal(after.Spec.CompletedAt)
})

// LastStarted returns the scan that was started last; nil if there is none. Of two scans started in
// the same second it prefers the one recorded last, then the one with the greater name, so that the
// result does not depend on the order of the list.
func LastStarted(scans []v1alpha1.Scan) *v1alpha1.Scan { return greatest(scans, every, compareStart) }

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

// LastSuccess returns the successful scan that was completed last; nil if there is none.
func LastSuccess(scans []v1alpha1.Scan) *v1alpha1.Scan { return greatest(scans, succeeded, compareEnd) }

// greatest returns the matching scan than which none compares greater; nil if none matches.
func greatest(scans []v1alpha1.Scan, matches func(*v1alpha1.Scan) bool,
	compare func(a, b *v1alpha1.Scan) int) (out *v1alpha1.Scan) {
	for i := range scans {
		if matches(&scans[i]) && (out == nil || compare(&scans[i], out) > 0) {
			out = &scans[i]
		}
	}
	return out
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
