package webhookdelivery

import (
	"encoding/json"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/appsec-dev/findings-operator/api/v1alpha1"
)

// isUrgent reports whether the delivery tells of a single decision, by a person or with an API key, and was not
// attempted yet. It goes ahead of what imports, operations and policies have changed, which are thousands at a time.
// This breaks no promise: events may arrive in any order.
func isUrgent(delivery *v1alpha1.WebhookDelivery) bool {
	const decision = "." + string(v1alpha1.TransitionTriaged)
	if len(delivery.Status.Attempts) > 0 || !strings.HasSuffix(delivery.Spec.Event.Type, decision) {
		return false
	}
	var payload struct {
		Data struct {
			By string `json:"by"`
		} `json:"data"`
	}
	// A payload that the controllers have not made may hold anything.
	err := json.Unmarshal([]byte(delivery.Spec.Payload), &payload)
	return err == nil && !strings.HasPrefix(payload.Data.By, v1alpha1.OperationAuthorPrefix)
}

// urgent lets through urgent deliveries.
var urgent = predicate.NewPredicateFuncs(func(object client.Object) bool {
	delivery, isDelivery := object.(*v1alpha1.WebhookDelivery)
	return isDelivery && isUrgent(delivery)
})
