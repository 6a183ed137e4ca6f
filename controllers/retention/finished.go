package retention

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/transitions"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// shelf is a sort of finished objects that one figure holds for.
type shelf string

const (
	closedFindings shelf = "closed findings"
	// triagedFindings are closed ones that a person has muted or commented.
	triagedFindings    shelf = "closed findings that were triaged"
	finishedScans      shelf = "finished scans"
	finishedDeliveries shelf = "finished deliveries"
	finishedOperations shelf = "finished operations"
	// previews are operations that nobody has committed.
	previews shelf = "previews of operations"
)

// kind is what the shelf holds, as the metric names it.
func (s shelf) kind() string {
	switch s {
	case finishedScans:
		return "Scan"
	case finishedDeliveries:
		return "WebhookDelivery"
	case finishedOperations, previews:
		return "TriageOperation"
	case closedFindings, triagedFindings:
	}
	return "Finding"
}

// finished says since when the object is, and on which shelf it belongs; false where the object
// itself says that it is to be kept: it has not finished, is on its way out, or its controller
// has still to record or to emit what happened to it. What other objects want of it is not asked.
func finished(object client.Object) (time.Time, shelf, bool) {
	if !object.GetDeletionTimestamp().IsZero() {
		return time.Time{}, "", false
	}
	switch o := object.(type) {
	case *v1alpha1.Finding:
		return findingFinished(o)
	case *v1alpha1.Scan:
		return scanFinished(o)
	case *v1alpha1.WebhookDelivery:
		return deliveryFinished(o)
	case *v1alpha1.TriageOperation:
		return operationFinished(o)
	}
	return time.Time{}, "", false
}

func findingFinished(finding *v1alpha1.Finding) (time.Time, shelf, bool) {
	closed := finding.Spec.Closed
	if closed == nil || !caughtUp(finding) {
		return time.Time{}, "", false
	}
	if isTriaged(&finding.Spec) {
		return closed.At.Time, triagedFindings, true
	}
	return closed.At.Time, closedFindings, true
}

// isTriaged reports whether a person has said something that would be lost: the finding could
// come back, and would then be as new.
func isTriaged(spec *v1alpha1.FindingSpec) bool {
	return findingstate.Declared(spec) == v1alpha1.UserStatusMuted || spec.Triage.Comments != ""
}

func scanFinished(scan *v1alpha1.Scan) (time.Time, shelf, bool) {
	switch {
	case !caughtUp(scan):
		return time.Time{}, "", false
	case scan.Spec.CompletedAt != nil:
		return scan.Spec.CompletedAt.Time, finishedScans, true
	case scan.Status.Phase == v1alpha1.ScanPhaseFailed:
		// Given up. No later than this: the start counts only where it was before the record.
		return scan.CreationTimestamp.Add(v1alpha1.ScanAbandonedAfter), finishedScans, true
	}
	return time.Time{}, "", false
}

func deliveryFinished(delivery *v1alpha1.WebhookDelivery) (time.Time, shelf, bool) {
	status := &delivery.Status
	if status.Phase != v1alpha1.WebhookDeliveryDelivered && status.Phase != v1alpha1.WebhookDeliveryFailed ||
		webhooks.RedeliveryAsked(delivery) != "" {
		return time.Time{}, "", false
	}
	switch n := len(status.Attempts); {
	case status.FinishedAt != nil:
		return status.FinishedAt.Time, finishedDeliveries, true
	case n > 0:
		return status.Attempts[n-1].At.Time, finishedDeliveries, true
	}
	return delivery.CreationTimestamp.Time, finishedDeliveries, true
}

func operationFinished(operation *v1alpha1.TriageOperation) (time.Time, shelf, bool) {
	switch status := &operation.Status; {
	case status.CompletedAt != nil:
		return status.CompletedAt.Time, finishedOperations, true
	case !operation.Spec.Commit && status.SelectedAt != nil:
		return status.SelectedAt.Time, previews, true
	}
	return time.Time{}, "", false
}

// caughtUp reports whether the object's controller has recorded what was last written, and made
// the deliveries of everything that it has recorded. Of a kind without transitions: always.
func caughtUp(object client.Object) bool {
	var observed int64
	var history transitions.History
	switch o := object.(type) {
	case *v1alpha1.Finding:
		observed = o.Status.ObservedGeneration
		history = transitions.History{Transitions: o.Status.Transitions, EmittedSeq: o.Status.EmittedSeq}
	case *v1alpha1.Scan:
		observed = o.Status.ObservedGeneration
		history = transitions.History{Transitions: o.Status.Transitions, EmittedSeq: o.Status.EmittedSeq}
	case *v1alpha1.Review:
		observed = o.Status.ObservedGeneration
		history = transitions.History{Transitions: o.Status.Transitions, EmittedSeq: o.Status.EmittedSeq}
	case *v1alpha1.ReviewIssue:
		observed = o.Status.ObservedGeneration
		history = transitions.History{Transitions: o.Status.Transitions, EmittedSeq: o.Status.EmittedSeq}
	default:
		return true
	}
	return observed == object.GetGeneration() && len(history.Owed()) == 0
}
