package webhookdelivery

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// confirmGone asks the API server whether the endpoint exists: the cache of endpoints may lag
// behind that of deliveries, and a delivery that was given up is not resumed.
func (r *Reconciler) confirmGone(ctx context.Context, s *scope, gone step) (step, error) {
	ref := s.Object.Spec.EndpointRef
	endpoint := &v1alpha1.WebhookEndpoint{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.Object.Namespace, Name: string(ref.Name)}, endpoint)
	if client.IgnoreNotFound(err) != nil {
		return gone, fmt.Errorf("get webhook endpoint %s: %w", ref.Name, err)
	}
	if apierrors.IsNotFound(err) || string(endpoint.UID) != ref.UID {
		return gone, nil
	}
	s.endpoint = endpoint
	return decide(s), nil
}
