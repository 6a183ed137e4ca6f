package webhookdelivery

import (
	"encoding/json"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
	"github.com/appsec-dev/findings-operator/internal/webhooks"
)

// isUrgent reports whether the delivery is about a single decision and has no attempt yet. It goes ahead of the others,
// which is allowed: events may arrive in any order.
func isUrgent(delivery *v1alpha1.WebhookDelivery) bool {
	_, change, _ := strings.Cut(delivery.Spec.Event.Type, ".")
	if len(delivery.Status.Attempts) > 0 || change != string(v1alpha1.TransitionTriaged) {
		return false
	}
	var payload struct {
		Data struct {
			By string `json:"by"`
		} `json:"data"`
	}
	// A payload that the controllers did not make may hold anything.
	err := json.Unmarshal([]byte(delivery.Spec.Payload), &payload)
	return err == nil && webhooks.IsSingleDecision(v1alpha1.TransitionType(change), payload.Data.By)
}

// urgent selects urgent deliveries.
var urgent = predicate.NewPredicateFuncs(func(object client.Object) bool {
	delivery, isDelivery := object.(*v1alpha1.WebhookDelivery)
	return isDelivery && isUrgent(delivery)
})
