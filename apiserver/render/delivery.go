package render

import (
	"cmp"
	"strings"
	"time"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/apiserver/openapi"
)

// WebhookDeliveryJSON renders a delivery: what was sent where and how each attempt ended. It leaves out the
// payload, the signatures and all data about secrets. The same delivery always gives the same bytes.
func WebhookDeliveryJSON(d *v1alpha1.WebhookDelivery) ([]byte, error) {
	return encodeNamed("webhook delivery", d.Name, &openapi.WebhookDelivery{
		Id:            d.Name,
		EndpointId:    string(d.Spec.EndpointRef.Name),
		EventId:       d.Spec.Event.ID,
		EventType:     d.Spec.Event.Type,
		EventTime:     second(d.Spec.Event.Time.Time),
		SubjectKind:   d.Spec.Event.Subject.Kind,
		SubjectId:     string(d.Spec.Event.Subject.Name),
		Status:        openapi.WebhookDeliveryStatus(DeliveryStatus(d)),
		Attempts:      deliveryAttempts(d.Status.Attempts),
		NextAttemptAt: optionalSecond(d.Status.NextAttemptAt),
		FinishedAt:    optionalSecond(d.Status.FinishedAt),
		RedeliveredAt: redeliveredAt(d.Status.Redelivery),
		CreatedAt:     second(d.CreationTimestamp.Time),
	})
}

// DeliveryStatus returns the shown status of a delivery, which is pending before any controller has observed
// it.
func DeliveryStatus(d *v1alpha1.WebhookDelivery) string {
	return strings.ToLower(string(cmp.Or(d.Status.Phase, v1alpha1.WebhookDeliveryPending)))
}

func deliveryAttempts(made []v1alpha1.WebhookAttempt) []openapi.WebhookDeliveryAttempt {
	attempts := make([]openapi.WebhookDeliveryAttempt, len(made))
	for i := range made {
		attempt := &made[i]
		attempts[i] = openapi.WebhookDeliveryAttempt{
			At:         second(attempt.At.Time),
			EndedAt:    optionalSecond(attempt.EndedAt),
			Outcome:    openapi.WebhookAttemptOutcome(strings.ToLower(string(attempt.Outcome))),
			StatusCode: attempt.Code,
			Message:    attempt.Message,
			RetryAt:    optionalSecond(attempt.RetryAt),
		}
	}
	return attempts
}

func redeliveredAt(redelivery *v1alpha1.WebhookRedelivery) *time.Time {
	if redelivery == nil {
		return nil
	}
	return optionalSecond(&redelivery.At)
}
