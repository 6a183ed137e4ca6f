// Package scans lists scans, and returns what a list of them says about what was scanned.
package scans

import (
	"cmp"
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/index"
)

// Of lists the scans that name an object in the field: a Project in index.Project, a Repository in index.Repository.
func Of(ctx context.Context, c client.Reader, object client.Object, field string) ([]v1alpha1.Scan, error) {
	list := &v1alpha1.ScanList{}
	err := index.List(ctx, c, list, object.GetNamespace(), field, object.GetName())
	return list.Items, err
}

// OfBranch lists those of them that are of the scan branch: not of a pull request, and not of a refused upload.
func OfBranch(ctx context.Context, c client.Reader, object client.Object, field string) ([]v1alpha1.Scan, error) {
	scans, err := Of(ctx, c, object, field)
	return slices.DeleteFunc(scans, func(s v1alpha1.Scan) bool { return s.IsOfReview() || s.IsRefused() }), err
}

// LastStarted is the scan that was started last; of two started in the same second the one
// recorded last, then the one of the greater name, so that the answer does not depend on
// the order of the list. Nil where there is none.
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
		a.Spec.StartedAt.Compare(b.Spec.StartedAt.Time),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

// LastSuccess is when the last scan that succeeded was completed; nil where none has.
func LastSuccess(scans []v1alpha1.Scan) *v1alpha1.Time {
	var last *v1alpha1.Time
	for i := range scans {
		spec := &scans[i].Spec
		if spec.Outcome != v1alpha1.ScanSucceeded || spec.CompletedAt == nil {
			continue
		}
		if last == nil || last.Before(spec.CompletedAt) {
			last = spec.CompletedAt
		}
	}
	return last.DeepCopy()
}

// IsLast reports whether the scan is one by which others know what was scanned last: the one of
// the list that was started last, that of those that succeeded, or the one that succeeded last.
// While these are kept, neither LastStarted nor LastSuccess changes with what else goes.
func IsLast(scan *v1alpha1.Scan, list []v1alpha1.Scan) bool {
	startedLast, succeeded := true, scan.Spec.Outcome == v1alpha1.ScanSucceeded
	lastToSucceed, succeededLast := succeeded, succeeded
	for i := range list {
		other := &list[i]
		if other.Name == scan.Name {
			continue
		}
		later := compareStart(other, scan) > 0
		if later {
			startedLast = false
		}
		if other.Spec.Outcome != v1alpha1.ScanSucceeded {
			continue
		}
		if later {
			lastToSucceed = false
		}
		if later && !other.Spec.CompletedAt.Before(scan.Spec.CompletedAt) ||
			scan.Spec.CompletedAt.Before(other.Spec.CompletedAt) {
			succeededLast = false
		}
	}
	return startedLast || lastToSucceed || succeededLast
}
