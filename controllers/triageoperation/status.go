package triageoperation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/controllers/internal/conditions"
	"github.com/appsec-dev/findings-operator/controllers/internal/ledger"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// paginate puts the changes that an ended operation made to findings into pages, for the endpoints that subscribe to
// pages, and ends the reconcile. An operation that failed before it was committed has no pages: its name only signs
// changes of an earlier operation, which are sent one by one.
func (r *Reconciler) paginate(ctx context.Context, s *scope) error {
	s.Status.ObservedGeneration = s.Object.Generation
	if s.Status.CompletedAt == nil {
		return nil
	}
	s.Stop()
	r.forget(client.ObjectKeyFromObject(s.Object)) // the write of the end may have been stored without an answer
	if !s.Object.Spec.Commit {
		return nil
	}
	again, err := r.pager.Make(ctx, s.Object.Namespace, webhooks.CauseOfOperation(s.Object), s.Status.CompletedAt, s.Now)
	s.RequeueAfter(again)
	return err
}

// inProgress sets the conditions of an operation in progress.
func inProgress(s *scope, message string) {
	s.Judge(conditions.NotReady(v1alpha1.ReasonInProgress, message))
}

// fail ends an operation that cannot continue, and stops the reconcile. Users cannot repair the operation, because its
// spec is immutable.
func fail(s *scope, reason, message string) {
	s.Status.Phase = v1alpha1.OperationFailed
	s.Status.CompletedAt = now(s)
	s.Judge(conditions.Stalled(reason, message))
	s.Stop()
}

func now(s *scope) *v1alpha1.Time {
	return new(v1alpha1.NewTime(s.Now))
}

// preview stops the reconcile of an uncommitted operation.
func preview(s *scope) {
	s.Status.Phase = v1alpha1.OperationPreview
	s.Judge(conditions.Ready("The findings are selected. Set spec.commit to decide about them."))
	s.Stop()
}

// complete ends an operation after its last part.
func (r *Reconciler) complete(_ context.Context, s *scope) error {
	if s.Status.DoneParts < s.Status.Parts {
		s.RequeueAfter(nextPartDelay)
		return nil
	}
	s.Status.Phase = v1alpha1.OperationCompleted
	s.Status.CompletedAt = now(s)
	s.Judge(conditions.Ready("The operation has worked through its findings."))
	s.RequeueAfter(ledger.PageDelay)
	return nil
}

// announce sends an Event with the result of an ended operation, and forgets its memory.
func (r *Reconciler) announce(s *scope) {
	if s.Status.CompletedAt != nil {
		r.forget(client.ObjectKeyFromObject(s.Object))
	}
	if s.Before.Phase == s.Status.Phase {
		return
	}
	switch s.Status.Phase {
	case v1alpha1.OperationCompleted:
		r.Recorder.Eventf(s.Object, nil, corev1.EventTypeNormal, "Completed", "Triage", "%s", endNote(s.Status))
	case v1alpha1.OperationFailed:
		ready := v1alpha1.FindCondition(s.Status.Conditions, v1alpha1.ConditionReady)
		r.Recorder.Eventf(s.Object, nil, corev1.EventTypeWarning, ready.Reason, "Triage", "%s", ready.Message)
	case v1alpha1.OperationSelecting, v1alpha1.OperationPreview, v1alpha1.OperationRunning:
	}
}

func endNote(status *v1alpha1.TriageOperationStatus) string {
	return fmt.Sprintf("Findings changed: %d, unchanged: %d, skipped because they were changed in the meantime: %d, failed: %d.",
		status.Changed, status.Unchanged, status.Conflicted, status.Failed)
}

// appendExample appends a finding that was not changed, unless the list is full.
func appendExample(list []v1alpha1.OperationExample, finding v1alpha1.ResourceName,
	message string) []v1alpha1.OperationExample {
	if len(list) == v1alpha1.MaxOperationSamples {
		return list
	}
	return append(list, v1alpha1.OperationExample{Finding: finding, Message: conditions.Shortened(message)})
}
