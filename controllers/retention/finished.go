package retention

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/internal/findingstate"
	"github.com/appsec-dev/findings-operator/internal/kube"
	"github.com/appsec-dev/findings-operator/internal/triageoperation"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// shelf is a group of finished objects with one retention period.
type shelf string

const (
	closedFindings shelf = "closed findings"
	// triagedFindings are closed findings whose spec.triage mutes them or has a comment.
	triagedFindings    shelf = "closed findings that were triaged"
	finishedScans      shelf = "finished scans"
	idleReviews        shelf = "idle reviews"
	finishedDeliveries shelf = "finished deliveries"
	finishedOperations shelf = "finished operations"
	// setlessOperations have failed before their sets were made, so they have decided about nothing.
	setlessOperations shelf = "operations without a set"
	// previews are uncommitted operations.
	previews shelf = "previews of operations"
)

// kind returns the kind of the shelf's objects, as in the metric's label.
func (s shelf) kind() string {
	kind, _ := kube.KindOf(newObject(s))
	return kind.Name
}

func newObject(on shelf) client.Object {
	switch on {
	case finishedScans:
		return &v1alpha1.Scan{}
	case idleReviews:
		return &v1alpha1.Review{}
	case finishedDeliveries:
		return &v1alpha1.WebhookDelivery{}
	case finishedOperations, setlessOperations, previews:
		return &v1alpha1.TriageOperation{}
	case closedFindings, triagedFindings:
	}
	return &v1alpha1.Finding{}
}

// finished returns when the object finished, and its shelf. It returns false if the object's own state requires keeping
// it: it has not finished, is being deleted, or its controller has yet to record or emit its transitions. It does not
// consider other objects; see held.
func finished(object client.Object) (time.Time, shelf, bool) {
	if !object.GetDeletionTimestamp().IsZero() {
		return time.Time{}, "", false
	}
	switch o := object.(type) {
	case *v1alpha1.Finding:
		return findingFinished(o)
	case *v1alpha1.Scan:
		return scanFinished(o)
	case *v1alpha1.Review:
		return reviewFinished(o)
	case *v1alpha1.WebhookDelivery:
		return deliveryFinished(o)
	case *v1alpha1.TriageOperation:
		return operationFinished(o)
	}
	return time.Time{}, "", false
}

func findingFinished(finding *v1alpha1.Finding) (time.Time, shelf, bool) {
	closed := finding.Spec.Closed
	if closed == nil || !findingstate.IsRecorded(finding) || owes(finding) {
		return time.Time{}, "", false
	}
	at := closed.At.Time
	if recorded := closureRecordedAt(&finding.Status); recorded.After(at) {
		at = recorded
	}
	// What somebody decides about a finding that was closed long ago is kept for the same time, and can be undone.
	if decided, found := lastOf(finding.Status.Transitions, v1alpha1.TransitionTriaged); found && decided.After(at) {
		at = decided
	}
	if isTriaged(&finding.Spec) {
		return at, triagedFindings, true
	}
	return at, closedFindings, true
}

// closureRecordedAt returns when the finding was closed according to its history, or when it last changed if the
// history does not show that. spec.closed.at alone is no proof: it is the start of a scan, which may be old or have a
// wrong clock, and whoever may close a finding may write any time.
func closureRecordedAt(status *v1alpha1.FindingStatus) time.Time {
	if at, found := lastOf(status.Transitions, v1alpha1.TransitionClosed); found {
		return at
	}
	if status.UpdatedAt != nil {
		return status.UpdatedAt.Time
	}
	return time.Time{}
}

// lastOf returns when the last transition of that type happened; false if the history holds none.
func lastOf(history []v1alpha1.Transition, change v1alpha1.TransitionType) (time.Time, bool) {
	for _, t := range slices.Backward(history) {
		if t.Type == change {
			return t.At.Time, true
		}
	}
	return time.Time{}, false
}

// isTriaged reports whether spec.triage mutes the finding or has a comment, which would be lost: if the finding
// reappeared, it would count as new.
func isTriaged(spec *v1alpha1.FindingSpec) bool {
	return findingstate.Declared(spec) == v1alpha1.UserStatusMuted || spec.Triage.Comments != ""
}

func scanFinished(scan *v1alpha1.Scan) (time.Time, shelf, bool) {
	switch {
	case scan.Status.ObservedGeneration != scan.Generation || owes(scan):
		return time.Time{}, "", false
	case scan.Spec.CompletedAt != nil:
		return scan.Spec.CompletedAt.Time, finishedScans, true
	case scan.Status.Phase == v1alpha1.ScanPhaseFailed:
		// The scan was abandoned by this time at the latest. The start counts only if it is before the creation.
		return scan.CreationTimestamp.Add(v1alpha1.ScanAbandonedAfter), finishedScans, true
	}
	return time.Time{}, "", false
}

// reviewFinished returns when the review last changed. It does not depend on the pull request's state, because CI often
// does not report how a pull request ended.
func reviewFinished(review *v1alpha1.Review) (time.Time, shelf, bool) {
	status := &review.Status
	if status.UpdatedAt == nil || status.ObservedGeneration != review.Generation || owes(review) {
		return time.Time{}, "", false
	}
	return status.UpdatedAt.Time, idleReviews, true
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
	case triageoperation.Setless(operation):
		return status.CompletedAt.Time, setlessOperations, true
	case status.CompletedAt != nil:
		return status.CompletedAt.Time, finishedOperations, true
	case !operation.Spec.Commit && status.SelectedAt != nil:
		return status.SelectedAt.Time, previews, true
	}
	return time.Time{}, "", false
}

// owes reports whether deliveries of the object's transitions have yet to be made.
func owes(object client.Object) bool { return len(ledger.HistoryOf(object).Owed()) > 0 }
