package webhookdelivery

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// conclude records the step in the status, and writes it if it differs.
func (r *Reconciler) conclude(ctx context.Context, s *scope, next step) error {
	status := s.Status
	status.ObservedGeneration = s.Object.Generation
	status.Phase, status.NextAttemptAt = next.phase, next.next
	switch {
	case next.phase == v1alpha1.WebhookDeliveryPending:
		status.FinishedAt = nil
	case status.FinishedAt == nil:
		status.FinishedAt = new(v1alpha1.NewTime(s.Now))
	}
	s.Judge(next.verdict)
	before := s.Before.Phase
	written, err := s.Store(ctx, r.Client)
	if written && before != next.phase && next.phase == v1alpha1.WebhookDeliveryFailed {
		r.Recorder.Eventf(s.Object, nil, corev1.EventTypeWarning, next.verdict.Reason, "Deliver",
			"Not delivered to WebhookEndpoint %s", s.Object.Spec.EndpointRef.Name)
	}
	return err
}
